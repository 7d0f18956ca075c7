// SPDX-License-Identifier: MIT
#include "sim/plan/parameter_elements.h"

#include <algorithm>

#include "models/frozen.h"

namespace convoy::inline plans {
namespace {

/// Of `all` values in `parts` rows, those of some rows. Where they do not divide, rows differ by one value.
IndexSet rows_of(const IndexRange& all, std::int64_t parts, const IndexSet& rows) {
  const std::int64_t values = all.end - all.begin;
  IndexSet set;
  for (const IndexRange& row : rows)
    set.push_back({all.begin + row.begin * values / parts, all.begin + row.end * values / parts});
  return united(std::move(set));
}

std::int64_t channels_of(const Shape& shape) { return shape.empty() ? 1 : shape.front(); }

}  // namespace

ParameterElements::ParameterElements(const TrainingGraph& graph) : graph_(graph), first_{0} {
  for (const Layer& layer : graph.model.layers) {
    tensors_.push_back(first_.size() - 1);
    const std::int64_t begin = first_.back();
    for (const ParameterTensor& tensor : layer.parameters) first_.push_back(first_.back() + tensor.elements);
    if (layer.frozen && first_.back() > begin) frozen_.push_back({begin, first_.back()});
  }
  frozen_ = united(std::move(frozen_));
}

IndexSet ParameterElements::of_tensor(std::size_t layer, std::size_t tensor, const IndexRanges& channels,
                                      const IndexRanges& inputs) const {
  const std::size_t index = tensor_index(layer, tensor);
  const IndexRange all{first_[index], first_[index + 1]};
  if (all.begin == all.end) return {};
  const Layer& of = graph_.model.layers[layer];
  const std::int64_t rows = channels_of(of.output);
  if (!inputs || tensor > 0) return channels ? rows_of(all, rows, *channels) : IndexSet{all};
  const std::int64_t columns = channels_of(graph_.model.shape_of(of.inputs.front()));
  IndexSet set;
  for (const IndexRange& range : channels ? *channels : all_of(rows))
    for (std::int64_t row = range.begin; row < range.end; ++row)
      for (const IndexRange& part : rows_of(rows_of(all, rows, {{row, row + 1}}).front(), columns, *inputs))
        set.push_back(part);
  return united(std::move(set));
}

IndexSet ParameterElements::of_layer(std::size_t layer, const IndexRanges& channels,
                                     const IndexRanges& inputs) const {
  IndexSet set;
  for (std::size_t tensor = 0; tensor < graph_.model.layers[layer].parameters.size(); ++tensor)
    for (const IndexRange& range : of_tensor(layer, tensor, channels, inputs)) set.push_back(range);
  return united(std::move(set));
}

KeptValues ParameterElements::all() const { return {all_of(count()), difference(all_of(count()), frozen_)}; }

double ParameterElements::bytes(const KeptValues& values) const {
  const StateBytes each = resident_bytes(1, graph_.options);
  const double computed_with = element_bytes(graph_.options.precision);
  const double of_state = each[static_cast<std::size_t>(MemoryClass::weights)] - computed_with +
                          each[static_cast<std::size_t>(MemoryClass::optimizer)];
  const auto frozen = static_cast<double>(convoy::count(intersection(values.parameters, frozen_)));
  const double trained = static_cast<double>(convoy::count(values.parameters)) - frozen;
  return trained * computed_with + frozen_bytes(frozen, graph_.options) +
         static_cast<double>(convoy::count(values.states)) * of_state;
}

const std::string& ParameterElements::layer_name(std::int64_t value) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), value);
  const auto tensor = static_cast<std::size_t>(after - first_.begin()) - 1;
  const auto layer = std::upper_bound(tensors_.begin(), tensors_.end(), tensor) - 1;
  return graph_.model.layers[static_cast<std::size_t>(layer - tensors_.begin())].name;
}

}  // namespace convoy::plans
