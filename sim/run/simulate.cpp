// SPDX-License-Identifier: MIT
#include "sim/run/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/layer_profile.h"
#include "models/model.h"
#include "sim/base/names.h"
#include "sim/replay/replay.h"
#include "sim/run/evaluate.h"
#include "sim/run/timeline.h"
#include "sim/run/trace.h"
#include "strategies/strategy.h"
#include "topologies/first_devices.h"

namespace convoy {
namespace {

constexpr std::size_t cached_values = 64;

/// The value of `key`, made where it is not there yet. Small: a sweep has few different models, or few points
/// of each.
template <class Value, class Make>
const Value& cached(std::map<std::string, Value>& cache, const std::string& key, Make make) {
  const auto it = cache.find(key);
  if (it != cache.end()) return it->second;
  if (cache.size() >= cached_values) cache.clear();
  return cache.emplace(key, make()).first->second;
}

/// "training.precision: device 'k80' cannot run tf32; it runs fp32"
void check_precision(const Training& training, const Machine& machine) {
  for (const DeviceType& type : machine.device_types) {
    if (type.runs(training.options.precision)) continue;
    std::vector<std::string> runs;
    for (const auto& [precision, peak] : type.peak_flops) runs.emplace_back(to_string(precision));
    throw InputError(training.precision_pos,
                     fmt::format("training.precision: device '{}' cannot run {}; it runs {}", type.name,
                                 to_string(training.options.precision), list_of(runs)));
  }
}

/// "training.recompute: blocks does not go with this strategy: ..."
void check_recomputation(const Training& training, const Strategy& strategy) {
  if (training.options.recompute == Recomputation::none) return;
  if (const std::string_view reason = strategy.refuses_recomputation(); !reason.empty())
    throw InputError(training.recompute_pos,
                     fmt::format("training.recompute: cannot be used with this strategy ({}); {}",
                                 strategy.label(), reason));
}

/// The cluster's kind of device that was measured: `name`, or its only one.
/// @param key "training.anchor"
const DeviceType& measured_device(const std::string& key, const SourcePos& pos,
                                  const std::optional<std::string>& name, const Machine& machine) {
  std::vector<std::string> names;
  for (const DeviceType& type : machine.device_types) names.push_back(type.name);
  if (!name && names.size() != 1)
    throw InputError(pos, fmt::format("{}: the cluster has several kinds of device; say which one was "
                                      "measured with 'device: NAME', one of {}",
                                      key, list_of(names)));
  const std::string& wanted = name ? *name : names.front();
  const auto type = std::find(names.begin(), names.end(), wanted);
  if (type == names.end())
    throw InputError(pos, fmt::format("{}.device: the cluster has no device '{}'{}; it has {}", key, wanted,
                                      suggestion(wanted, names), list_of(names)));
  return machine.device_types[static_cast<std::size_t>(type - names.begin())];
}

void add_profile(const ProfileSpec& spec, const TrainingGraph& graph, const Machine& machine,
                 CostModel& cost) {
  const DeviceType& device = measured_device("training.profile", spec.pos, spec.device, machine);
  std::vector<std::string> names;
  for (const Layer& layer : graph.model.layers) names.push_back(layer.name);
  for (const ProfiledLayer& row : read_layer_profile(spec.file).layers) {
    const auto layer = std::find(names.begin(), names.end(), row.name);
    if (layer == names.end())
      throw InputError(row.pos, fmt::format("layer: {} has no layer '{}'{}", graph.model.name, row.name,
                                            suggestion(row.name, names)));
    cost.measured(graph, static_cast<std::uint32_t>(layer - names.begin()), row.images, row.forward_s,
                  row.backward_s, device);
  }
}

CostModel make_cost(const Training& training, const TrainingGraph& graph, const Machine& machine) {
  CostModel cost(training.options.precision);
  if (training.profile) add_profile(*training.profile, graph, machine, cost);
  if (const std::optional<Anchor>& anchor = training.anchor)
    cost.anchor(graph, static_cast<double>(anchor->batch), anchor->images_per_s,
                measured_device("training.anchor", anchor->pos, anchor->device, machine));
  return cost;
}

}  // namespace

const Model& Preparer::model(const YamlNode& node) {
  return cached(models_, fingerprint(node), [&] { return read_model(node); });
}

std::shared_ptr<const TrainingGraph> Preparer::graph(const YamlNode& node, const TrainingOptions& options) {
  const std::string key = fmt::format(
      "{} {} {} {} {}", static_cast<int>(options.precision), static_cast<int>(options.optimizer),
      static_cast<int>(options.recompute), static_cast<int>(options.framework), fingerprint(node));
  return cached(graphs_, key, [&] {
    return std::make_shared<const TrainingGraph>(build_training_graph(model(node), options));
  });
}

const ClusterSpec& Preparer::cluster(const YamlNode& node) {
  return cached(clusters_, fingerprint(node), [&] { return read_cluster(node); });
}

PreparedRun Preparer::prepare(std::size_t index, const YamlNode* instead) {
  PreparedRun run = prepare(experiment_->point(index), instead);
  run.id = point_id(index);
  run.coordinates = experiment_->coordinates(index);
  return run;
}

PreparedRun Preparer::prepare(const Point& point, const YamlNode* instead, const WhatIf& change) {
  const std::unique_ptr<Strategy> strategy = read_strategy(instead ? *instead : point.strategy);
  check_recomputation(point.training, *strategy);
  std::shared_ptr<const TrainingGraph> graph = this->graph(point.model, point.training.options);
  const ClusterSpec& cluster = this->cluster(point.cluster);
  Machine machine = build_machine(cluster, strategy->dedicated_hosts(cluster.node_count()));
  apply(change, machine);
  check_precision(point.training, machine);
  for (DeviceType& type : machine.device_types)
    if (type.framework_reserves)
      type.reserved_bytes = framework_memory(point.training.options.framework).reserved_bytes;
  CostModel cost = make_cost(point.training, *graph, machine);
  const StrategyInput input{*graph, machine, cost, point.training.batch};
  std::shared_ptr<PhasedRun> phased;
  Plan plan;
  if (std::vector<RunPhase> phases = strategy->phases(input); phases.empty()) {
    plan = strategy->plan(input);
  } else {
    plan = phases.back().plan;
    phased = std::make_shared<PhasedRun>(PhasedRun{machine, std::move(phases)});
    machine = first_devices(machine, phased->phases.back().devices);
  }
  return {{},
          {},
          std::move(graph),
          std::move(machine),
          std::move(cost),
          std::move(plan),
          strategy->label(),
          point.training.samples,
          std::move(phased)};
}

RunOutput simulate(const PreparedRun& run, bool with_trace) {
  const ReplayResult replayed = replay(run.plan, run.machine, run.cost, {});
  RunOutput output{evaluate(run, replayed), {}};
  if (run.phased)
    add_timeline(run, replayed, with_trace, output);
  else if (with_trace)
    output.trace = trace_of(run.plan, run.machine, run.cost, replayed);
  return output;
}

}  // namespace convoy
