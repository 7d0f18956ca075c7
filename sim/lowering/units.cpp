// SPDX-License-Identifier: MIT
#include "sim/lowering/units.h"

#include <algorithm>

#include "models/frozen.h"
#include "models/memory_rules.h"
#include "models/tensor_bytes.h"
#include "sim/lowering/graph_index.h"

namespace convoy::inline lowering {
Units find_units(const TrainingGraph& graph) {
  const Model& model = graph.model;
  const GraphIndex index(graph);
  Units units;
  std::vector<std::vector<std::uint32_t>> readers(model.layers.size());
  for (std::uint32_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (memory_rules(model, i).view) {
      const LayerIndex of = layer.inputs.front();
      units.unit_of.push_back(of == image_input ? Units::none : units.unit_of[static_cast<std::size_t>(of)]);
      continue;
    }
    const auto unit = static_cast<std::uint32_t>(units.layers.size());
    units.unit_of.push_back(unit);
    units.layers.push_back(i);
    units.frozen.push_back(frozen_elements(layer));
    units.parameters.push_back(static_cast<double>(layer.parameter_elements()) - units.frozen.back());
    for (const LayerIndex input : layer.inputs)
      if (input != image_input) readers[static_cast<std::size_t>(input)].push_back(unit);
  }
  units.begins.assign(units.size(), true);
  for (std::uint32_t i = 0; i < model.layers.size(); ++i)
    if (const Layer& layer = model.layers[i]; layer.shares()) {
      const std::uint32_t first = units.unit_of[static_cast<std::size_t>(layer.weights_of)];
      for (std::uint32_t unit = units.unit_of[i]; unit > first; --unit) units.begins[unit] = false;
    }
  const TensorBytes bytes(graph);
  for (std::uint32_t i = 0; i < model.layers.size(); ++i) {
    if (readers[i].empty() || units.unit_of[i] == Units::none) continue;
    readers[i].erase(std::unique(readers[i].begin(), readers[i].end()), readers[i].end());
    units.tensors.push_back({i, units.unit_of[i], std::move(readers[i]), bytes(static_cast<LayerIndex>(i)),
                             index.needs_gradient(i)});
  }
  return units;
}

std::vector<std::uint32_t> stages_of_layers(const Units& units,
                                            const std::vector<std::uint32_t>& first_units) {
  std::vector<std::uint32_t> stages;
  for (const std::uint32_t unit : units.unit_of) {
    const auto after = std::upper_bound(first_units.begin(), first_units.end(), unit);
    stages.push_back(unit == Units::none ? 0 : static_cast<std::uint32_t>(after - first_units.begin() - 1));
  }
  return stages;
}

}  // namespace convoy::lowering
