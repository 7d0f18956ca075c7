// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/training_graph.h"
#include "sim/lowering/units.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Memory that begins or ends with an operation.
struct StageMemory {
  MemoryClass memory_class;
  double bytes_per_image, bytes_fixed;
};

/// An operation as a stage runs it, on any number of images.
struct StageOp {
  static constexpr OpId none = 0xffffffff;
  OpId op;  ///< index into TrainingGraph::operations; none: only memory
  std::string name;
  Work work;
  std::vector<StageMemory> allocates, frees;
  std::optional<double> images = std::nullopt;  ///< that it works on, where these are not the pass' own
  bool again = false;                           ///< a run of it that the plan adds for the backward pass
};

/// What a stage does with one micro-batch, and with its parameters.
struct Stage {
  std::vector<std::string> layers;  ///< names, in the model's order
  std::vector<StageOp> forward, backward, update;
  /// The same with recomputation of the whole stage (Chen et al., arXiv:1604.06174), where that was asked
  /// for: `light_forward` keeps nothing but what the stage got from others, `full_backward` runs the forward
  /// pass again first.
  std::vector<StageOp> light_forward, full_backward;
  double parameter_elements = 0;        ///< that are trained
  double frozen_elements = 0;           ///< that are not
  std::vector<std::size_t> parameters;  ///< indices into TrainingGraph::parameters
};

/// What goes from one stage to a later one, of one image: outputs in forward, their gradients back.
struct StageEdge {
  std::uint32_t from, to;
  double forward_bytes = 0, backward_bytes = 0;
  std::vector<CommMeaning::Result> forward{}, backward{};
};

/// A training graph in consecutive stages.
///
/// An output that a later stage reads is sent straight to that stage, once, whatever lies between (as
/// torchgpipe's portals and PipeDream's runtime do); its gradient comes back the same way, summed over the
/// readers in that stage. The image is there wherever it is read. Each operation of the graph is in exactly
/// one stage: that of its layer; a gradient sum where both its summands are first together.
///
/// All this is as graph_schedule.h has it, where every device of a stage does all of its layers. A tensor is
/// in memory from the operation that makes it, or from the beginning of the pass that it was received for,
/// each tensor that another stage sends by itself, to its last user in the stage, or to the end of the pass
/// after which it is sent on. Messages under way are not counted.
struct Stages {
  std::vector<Stage> stages;
  std::vector<StageEdge> edges;  ///< ordered by (from, to)
};

/// @param first_units of each stage, ascending, the first 0.
/// @param recomputes stages have `light_forward` and `full_backward`
Stages cut_into_stages(const TrainingGraph& graph, const Units& units,
                       const std::vector<std::uint32_t>& first_units, bool recomputes);

/// All of the network as one stage. What the graph recomputes itself is in its backward pass.
Stage whole_network(const TrainingGraph& graph);

class ReplicaProgramMemo;  // stage_plan.cpp

/// whole_network of a graph, made when it is first asked for. It depends on the graph alone, so that who plans
/// a graph again and again keeps one of these beside it.
class WholeNetwork {
 public:
  /// @param graph outlives this object
  explicit WholeNetwork(const TrainingGraph& graph) : graph_(&graph) {}
  const Stages& stages() const;  ///< one, without edges
  const Stage& stage() const { return stages().stages.front(); }
  /// The programs of its replicas that plan_stages made.
  ReplicaProgramMemo& programs() const;

 private:
  const TrainingGraph* graph_;
  mutable std::optional<Stages> stages_;
  mutable std::shared_ptr<ReplicaProgramMemo> programs_;
};

/// The operation on `images` images; `suffix` tells micro-batches apart.
PlanOp plan_op(const StageOp& op, double images, const std::string& suffix);

}  // namespace convoy::lowering
