// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// A network with branches that jump over others: more than random_model's, since cuts cross them.
inline std::string branched_model(Dice& dice) {
  std::string layers;
  const int count = dice.between(8, 14);
  for (int i = 0; i < count; ++i) {
    const auto before = [&] {
      return i == 0 ? std::string("input") : fmt::format("l{}", dice.between(std::max(0, i - 4), i - 1));
    };
    const int kind = dice.between(0, 5);
    if (i > 1 && kind == 0)
      layers += fmt::format("{{name: l{}, kind: concat, inputs: [{}, {}]}}, ", i, before(), before());
    else if (i > 0 && kind == 1)
      layers += fmt::format("{{name: l{}, kind: relu, inputs: [{}]}}, ", i, before());
    else if (i > 0 && kind == 2)
      layers += fmt::format("{{name: l{}, kind: batch_norm, inputs: [{}]}}, ", i, before());
    else
      layers +=
          fmt::format("{{name: l{}, kind: conv2d, out_channels: {}, kernel: 3, padding: 1, inputs: [{}]}}, ",
                      i, dice.between(1, 24), before());
  }
  return fmt::format(
      "{{name: net, input: [3, 16, 16], loss: cross_entropy, layers: [{}{{name: flat, kind: flatten}}, "
      "{{name: fc, kind: linear, out_features: 10}}]}}",
      layers);
}

/// The operation of the graph that a plan's is: without " #3" and " again".
inline std::string base_name(std::string name) {
  if (const std::size_t at = name.find(" #"); at != std::string::npos) name.resize(at);
  if (name.ends_with(" again")) name.resize(name.size() - 6);
  return name;
}

/// Images that each operation is run on, over all devices.
inline std::map<std::string, double> executed(const Plan& plan) {
  std::map<std::string, double> images;
  for (const Role& role : plan.roles)
    for (const Task& task : role.program)
      for (const PlanOp& op : task.ops)
        images[base_name(op.name)] += op.images * static_cast<double>(role.members.size());
  return images;
}

/// Stage of every layer, from the plan's own list.
inline std::map<std::string, std::size_t> stage_of_layers(const StrategyReport& report) {
  std::map<std::string, std::size_t> stage;
  for (std::size_t s = 0; s < report.stages.size(); ++s)
    for (const std::string& layer : report.stages[s].layers) CHECK(stage.emplace(layer, s).second);
  return stage;
}

/// What crosses, counted from the model: every output once to every other stage that reads it, and its
/// gradient back; a ring's 2 (N - 1) S for the parameters of a stage.
/// @param sums in a step, by stage
inline double expected_bytes(const Experiment& experiment, double images,
                             const std::function<double(std::size_t)>& sums) {
  const Model& model = experiment.graph().model;
  const std::map<std::string, std::size_t> stage = stage_of_layers(experiment.report());
  double bytes = 0;
  std::set<std::pair<std::size_t, std::size_t>> sent;  // layer, stage
  for (const Layer& layer : model.layers) {
    if (std::holds_alternative<Flatten>(layer.kind)) continue;
    for (const LayerIndex input : layer.inputs) {
      if (input == image_input) continue;
      const Layer& from = model.layers[static_cast<std::size_t>(input)];
      const std::size_t to = stage.at(layer.name);
      if (stage.at(from.name) == to || !sent.emplace(static_cast<std::size_t>(input), to).second) continue;
      // In these networks all but what lies between the image and a convolution has a gradient.
      bytes += images * 4.0 * static_cast<double>(elements(from.output)) * 2;
    }
  }
  for (std::size_t s = 0; s < experiment.report().stages.size(); ++s) {
    const PipelineStage& part = experiment.report().stages[s];
    double parameters = 0;
    for (const Layer& layer : model.layers)
      if (std::find(part.layers.begin(), part.layers.end(), layer.name) != part.layers.end())
        parameters += static_cast<double>(layer.parameter_elements());
    bytes += sums(s) * 2 * (static_cast<double>(part.devices.size()) - 1) * 4 * parameters;
  }
  return bytes;
}

}  // namespace convoy::lab
