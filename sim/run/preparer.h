// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/layer_profile.h"
#include "sim/base/memo.h"
#include "sim/lowering/stages.h"
#include "sim/run/experiment.h"
#include "sim/run/point_reader.h"
#include "sim/run/prepared_run.h"
#include "sim/run/shared_node.h"
#include "sim/run/what_if.h"
#include "strategies/strategy.h"
#include "topologies/cluster.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// How much of a run is prepared.
enum class Detail : std::uint8_t {
  step,  ///< what its step, energy and memory depend on
  all,   ///< its doubts, for its interval, and which algorithms were chosen, too
};

/// Reads points of one experiment. Models and clusters that several points share are read once.
class Preparer {
 public:
  explicit Preparer(const Experiment& experiment) : experiment_(&experiment), reader_(experiment) {}
  Preparer() = default;  ///< for points that belong to no experiment
  /// From now on reads the points of this experiment, which may be the same object with other content; what it knows
  /// of models and clusters is kept.
  void turn_to(const Experiment& experiment) {
    experiment_ = &experiment;
    reader_.emplace(experiment);
  }
  /// @param instead a strategy in place of the point's own
  /// @throws InputError: anything that is wrong with the point, including its plan.
  PreparedRun prepare(std::size_t index, const YamlNode* instead = nullptr, Detail detail = Detail::all);
  /// @param change changes the cluster's machine before anything is decided
  PreparedRun prepare(const Point& point, const YamlNode* instead, const WhatIf& change = {},
                      Detail detail = Detail::all);
  /// The point on some of its cluster's devices, beside whatever is on the others.
  /// @param devices of machine_of(point), in ascending order
  PreparedRun prepare_on(const Point& point, const std::vector<EndpointId>& devices);
  /// The machine on which the point's plan is made: its cluster's, as its transport leaves it.
  Machine machine_of(const Point& point);
  /// Reads the parts of a point that no earlier point had, so that errors in them are reported before
  /// anything is simulated, and so that processes forked afterwards have the first of them.
  /// @returns the content of the users' files from which the parts were read (InputRecord::digests)
  /// @throws InputError
  std::string read_parts(const Point& point);
  /// The model or cluster of a point, read if it has not been. Valid until the next call of a member.
  const Model& model(const SharedNode& node);
  const ClusterSpec& cluster(const SharedNode& node);
  const Experiment& experiment() const { return *experiment_; }
  /// Which model shares links in the replays of its points.
  NetworkModel network_model() const {
    return experiment_ ? experiment_->network_model() : NetworkModel::convoy;
  }
  /// Whether each replay needs a process of its own: SimGrid's clock continues from one to the next.
  bool replays_apart() const { return network_model() == NetworkModel::simgrid; }
  /// A point of the experiment. Valid until the next call.
  const Point& point(std::size_t index) { return reader_.value().point(index); }
  /// PointReader::content of the experiment.
  std::string content(std::size_t index) { return reader_.value().content(index); }
  /// From now on plans say what their tasks mean (Plan::meaning), as far as their strategies can.
  void ask_for_meaning() { meaning_ = true; }
  /// From now on results of prepared runs list classes of equal devices and links, or each of them.
  void list_by_class(bool by_class) { by_class_ = by_class; }

 private:
  /// What was read, and InputRecord::digests of the files from which it was read.
  template <class Value>
  struct Read {
    Value value;
    std::string inputs;
  };

  void add_doubts(const Point& point, const YamlNode* instead, const WhatIf& change, PreparedRun& run);
  PreparedRun prepare_over(Protocol protocol, const Point& point, const YamlNode* instead,
                           const WhatIf& change, Detail detail);
  const Read<Model>& model_read(const SharedNode& node);
  const Read<ClusterSpec>& cluster_read(const SharedNode& node);
  const Read<LayerProfile>& profile_read(const std::string& file);
  /// A graph, and what depends on it alone.
  struct PlannedGraph {
    std::shared_ptr<const TrainingGraph> graph;
    std::shared_ptr<const WholeNetwork> network;
  };
  const PlannedGraph& graph(const SharedNode& node, const TrainingOptions& options);
  CostModel cost(const Training& training, const TrainingGraph& graph, const Machine& machine);
  Machine machine(const Point& point, std::uint32_t dedicated_hosts, const Transport& transport);

  /// A strategy says where it was written, in errors of its plans.
  struct WrittenStrategy {
    SharedNode node;
    bool operator==(const WrittenStrategy& other) const { return node.is(other.node); }
    std::size_t hash() const { return node.hash(); }
  };
  using ReadStrategy = Read<std::shared_ptr<const Strategy>>;
  ReadStrategy strategy_read(const SharedNode& node);

  struct MachineKey {
    SharedNode cluster;
    std::uint32_t dedicated_hosts;
    Transport transport;
    std::uint32_t endpoints;
    bool operator==(const MachineKey&) const = default;
    std::size_t hash() const { return hash_with(cluster.hash(), dedicated_hosts); }
    std::size_t weight() const { return 128 + endpoints; }
  };

  const Experiment* experiment_ = nullptr;
  bool meaning_ = false, by_class_ = false;
  std::unordered_map<SharedNode, Read<Model>, SharedNode::Hash> models_;
  std::unordered_map<std::string, PlannedGraph> graphs_;
  std::unordered_map<SharedNode, Read<ClusterSpec>, SharedNode::Hash> clusters_;
  std::size_t clusters_weight_ = 0;  ///< of those that are kept
  std::unordered_map<std::string, Read<LayerProfile>> profiles_;
  Memo<WrittenStrategy, ReadStrategy> strategies_{1024};
  std::unordered_map<std::string, std::string> inputs_of_parts_;  ///< by the part's name and fingerprint
  Memo<MachineKey, std::shared_ptr<const Machine>> machines_{1 << 16};
  std::optional<PointReader> reader_;  ///< of the experiment
};

}  // namespace convoy::runs
