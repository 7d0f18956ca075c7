// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/model.h"
#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/costs/cost_model.h"
#include "sim/replay/replay.h"
#include "strategies/strategy.h"
#include "topologies/cluster.h"

namespace convoy::lab {

/// A small experiment put together from YAML texts, for tests that look at plans and replays.
class Experiment {
 public:
  /// @param batch per device
  Experiment(const std::string& model, const std::string& cluster, const std::string& strategy,
             std::int64_t batch)
      : Experiment(model, cluster, strategy, {batch, std::nullopt, {"test", 1, 1}}) {}
  static Experiment with_global_batch(const std::string& model, const std::string& cluster,
                                      const std::string& strategy, std::int64_t batch,
                                      const TrainingOptions& options = {}) {
    return {model, cluster, strategy, {std::nullopt, batch, {"test", 1, 1}}, options};
  }
  Experiment(const std::string& model, const std::string& cluster, const std::string& strategy,
             const BatchSpec& batch, const TrainingOptions& options = {})
      : model_(read_model(parse_yaml(model, "model"))),
        graph_(build_training_graph(model_, options)),
        cost_(options.precision),
        batch_(batch),
        strategy_(read_strategy(parse_yaml(strategy, "strategy"))) {
    const ClusterSpec spec = read_cluster(parse_yaml(cluster, "cluster"));
    const std::string library =
        strategy_->library.value_or(default_library(*strategy_, options.framework, device_kinds.front()));
    machine_ = build_machine(spec, strategy_->dedicated_hosts(spec.node_count()),
                             transport_over(library, spec.protocol().protocol));
    planned_ = strategy_->plan({graph_, machine_, cost_, batch_});
  }

  ReplayResult run(bool fold = true, NetworkModel network_model = NetworkModel::convoy) const {
    return replay(planned_.plan, machine_, cost_, {fold, network_model});
  }

  const TrainingGraph& graph() const { return graph_; }
  const Machine& machine() const { return machine_; }
  const CostModel& cost() const { return cost_; }
  const Plan& plan() const { return planned_.plan; }
  Plan& plan() { return planned_.plan; }
  const StrategyReport& report() const { return planned_.report; }
  const Strategy& strategy() const { return *strategy_; }
  const BatchSpec& batch() const { return batch_; }
  bool takes_recomputation() const { return strategy_->refuses_recomputation().empty(); }
  std::vector<RunPhase> phases() const { return strategy_->phases({graph_, machine_, cost_, batch_}); }

 private:
  Model model_;
  TrainingGraph graph_;
  CostModel cost_;
  BatchSpec batch_;
  std::unique_ptr<Strategy> strategy_;
  Machine machine_;
  ReportedPlan planned_;
};

/// `layers` equal custom layers of 1 GFLOP forward and 2 GFLOP backward an image with `parameters` parameters
/// each.
inline std::string custom_model(int layers, std::int64_t parameters) {
  std::string text = "{name: toy, input: [3, 32, 32], layers: [";
  for (int i = 0; i < layers; ++i)
    text +=
        "{name: body" + std::to_string(i) +
        ", kind: custom, forward_flops: 1e9, backward_flops: 2e9, parameters: " + std::to_string(parameters) +
        ", output: [10], memory_bytes: 0},";
  return text + "]}";
}

/// One ideal 10 TFLOPS device a server: 1 GFLOP takes 0.1 ms.
inline std::string ideal_servers() {
  return "servers: {box: {devices: [{device: ideal, count: 1}], interconnect: {kind: none}}}, "
         "devices: {ideal: {peak: {fp32: 10TFLOPS, fp16: 20TFLOPS}, memory: 16GiB, memory_bandwidth: "
         "500GB/s, efficiency: 1.0, "
         "launch_overhead: 0us}}";
}

/// `nodes` hosts with one ideal device each on a switch.
inline std::string star(int nodes, const std::string& bandwidth, const std::string& latency,
                        const std::string& more = "") {
  return "{name: lab, nodes: [{name: n, count: " + std::to_string(nodes) + ", server: box" + more +
         "}], fabric: {kind: switch, bandwidth: " + bandwidth + ", latency: " + latency + "}, " +
         ideal_servers() + "}";
}

}  // namespace convoy::lab
