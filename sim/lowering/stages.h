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

/// An operation of a stage, for any number of images.
struct StageOp {
  static constexpr OpId none = 0xffffffff;
  OpId op;  ///< index into TrainingGraph::operations; none: it only allocates and frees memory
  std::string name;
  Work work;
  std::vector<StageMemory> allocates, frees;
  std::optional<double> images = std::nullopt;  ///< that it works on, if these are not the images of the pass
  bool again = false;                           ///< whether it is recomputed for the backward pass
};

/// What a stage does with one micro-batch, and with its parameters.
struct Stage {
  std::vector<std::string> layers;  ///< names, in the model's order
  std::vector<StageOp> forward, backward, update;
  /// The same with recomputation of the whole stage (Chen et al., arXiv:1604.06174), if that is asked for:
  /// `light_forward` keeps only what the stage received from other stages, and `full_backward` begins by
  /// running the forward pass again.
  std::vector<StageOp> light_forward, full_backward;
  double parameter_elements = 0;        ///< that are trained
  double frozen_elements = 0;           ///< that are not
  std::vector<std::size_t> parameters;  ///< indices into TrainingGraph::parameters
};

/// What one stage sends to a later one for each image: outputs in the forward pass, whose gradients come back
/// in the backward pass.
struct StageEdge {
  std::uint32_t from, to;
  double forward_bytes = 0, backward_bytes = 0;
  std::vector<CommMeaning::Result> forward{}, backward{};
};

/// A training graph cut into consecutive stages.
///
/// An output that a later stage reads is sent to that stage directly and once, whichever stages lie between
/// (as torchgpipe's portals and PipeDream's runtime do). Its gradient comes back the same way, summed over
/// the readers in that stage. Every stage that reads the image has it. Each operation of the graph is in
/// exactly one stage, that of its layer; a sum of gradients is in the stage in which both summands are
/// available first.
///
/// This is the schedule of graph_schedule.h in which every device of a stage computes all of its layers. A
/// tensor is in memory from the operation that makes it, or from the beginning of the pass for which it was
/// received (each tensor that another stage sends counts by itself), to its last user in the stage, or to the
/// end of the pass after which it is sent on. Messages under way are not counted.
struct Stages {
  std::vector<Stage> stages;
  std::vector<StageEdge> edges;  ///< ordered by (from, to)
};

/// @param first_units of each stage, ascending, the first 0.
/// @param recomputes stages have `light_forward` and `full_backward`
Stages cut_into_stages(const TrainingGraph& graph, const Units& units,
                       const std::vector<std::uint32_t>& first_units, bool recomputes);

/// The whole network as one stage. What the graph itself recomputes is in the backward pass.
Stage whole_network(const TrainingGraph& graph);

class ReplicaProgramMemo;  // stage_plan.cpp

/// The whole_network of a graph, made when it is first asked for. It depends only on the graph, so code that
/// plans the same graph repeatedly keeps one of these with the graph.
class WholeNetwork {
 public:
  /// @param graph outlives this object
  explicit WholeNetwork(const TrainingGraph& graph) : graph_(&graph) {}
  const Stages& stages() const;  ///< one, without edges
  const Stage& stage() const { return stages().stages.front(); }
  /// The programs of its replicas that plan_stages has made.
  ReplicaProgramMemo& programs() const;

 private:
  const TrainingGraph* graph_;
  mutable std::optional<Stages> stages_;
  mutable std::shared_ptr<ReplicaProgramMemo> programs_;
};

/// The operation on `images` images; `suffix` is the micro-batch in its name.
PlanOp plan_op(const StageOp& op, double images, const std::string& suffix);

}  // namespace convoy::lowering
