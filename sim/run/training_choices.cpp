// SPDX-License-Identifier: MIT
#include "sim/run/training_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/input_error.h"
#include "sim/base/names.h"

namespace convoy::inline runs {

TrainingOptions resolve_software(const Training& training, const Machine& machine) {
  TrainingOptions options = training.options;
  const bool have_tf32 = std::all_of(machine.device_types.begin(), machine.device_types.end(),
                                     [](const DeviceType& type) { return type.runs(Precision::tf32); });
  if (!training.precision_given) options.precision = default_precision(options.framework, have_tf32);
  if (!training.layout_given) options.layout = default_layout(options.framework, options.precision);
  for (const DeviceType& type : machine.device_types) {
    if (type.runs(options.precision)) continue;
    std::vector<std::string> runs;
    for (const auto& [precision, peak] : type.peak_flops) runs.emplace_back(to_string(precision));
    throw InputError(training.precision_pos,
                     fmt::format("training.precision: device '{}' cannot run {}; it runs {}", type.name,
                                 to_string(options.precision), list_of(runs)));
  }
  return options;
}

void check_recomputation(const Training& training, const Strategy& strategy) {
  if (training.options.recompute == Recomputation::none) return;
  if (const std::string_view reason = strategy.refuses_recomputation(); !reason.empty())
    throw InputError(training.recompute_pos,
                     fmt::format("training.recompute: cannot be used with this strategy ({}); {}",
                                 strategy.label(), reason));
}

Transport transport_of(const Strategy& strategy, const ClusterSpec& cluster, const Training& training,
                       Protocol protocol) {
  const DeviceKind* kind = &device_kinds.front();
  for (const ServerSpec& server : cluster.servers)
    for (const auto& [type, count] : server.devices) kind = std::max(kind, type.kind);
  return transport_over(
      strategy.library.value_or(default_library(strategy, training.options.framework, *kind)), protocol);
}

const DeviceType& measured_device(const std::string& key, const SourcePos& pos,
                                  const std::optional<std::string>& name, const Machine& machine) {
  std::vector<std::string> names;
  for (const DeviceType& type : machine.device_types) names.push_back(type.name);
  if (!name && names.size() != 1)
    throw InputError(pos, fmt::format("{}: the cluster has several kinds of device; say which one was "
                                      "measured with 'device: NAME', one of {}",
                                      key, list_of(names)));
  const std::string wanted = name ? meant(*name, names) : names.front();
  const auto type = std::find(names.begin(), names.end(), wanted);
  if (type == names.end())
    throw InputError(pos, fmt::format("{}.device: the cluster has no device '{}'{}; it has {}", key, wanted,
                                      suggestion(wanted, names), list_of(names)));
  return machine.device_types[static_cast<std::size_t>(type - names.begin())];
}

void add_profile(const ProfileSpec& spec, const LayerProfile& profile, const TrainingGraph& graph,
                 const Machine& machine, CostModel& cost) {
  const DeviceType& device = measured_device("training.profile", spec.pos, spec.device, machine);
  std::vector<std::string> names;
  for (const Layer& layer : graph.model.layers) names.push_back(layer.name);
  for (const ProfiledLayer& row : profile.layers) {
    const auto layer = std::find(names.begin(), names.end(), row.name);
    if (layer == names.end())
      throw InputError(row.pos, fmt::format("layer: {} has no layer '{}'{}", graph.model.name, row.name,
                                            suggestion(row.name, names)));
    cost.measured(graph, static_cast<std::uint32_t>(layer - names.begin()), row.images, row.forward_s,
                  row.backward_s, device);
  }
}

}  // namespace convoy::runs
