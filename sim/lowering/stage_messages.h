// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/lowering/staged_passes.h"
#include "sim/lowering/stages.h"

namespace convoy::inline lowering {

/// The messages that the stages of a plan send each other: one for each micro-batch, edge between two stages, and
/// direction (outputs in the forward pass, their gradients in the backward pass).
class StageMessages {
 public:
  /// In an endless run, stages that send each other nothing, and those that have no gradient to send, keep in step by
  /// messages without bytes; otherwise one of them could run ahead without limit.
  /// @param plan gets patterns and communications  @pre passes and plan outlive this object
  StageMessages(std::vector<StageEdge> edges, const StagedPasses& passes, Fidelity fidelity, Plan& plan);

  std::size_t edge_count() const { return edges_.size(); }
  /// Whether the message of a pass over an edge leaves a stage or, with `leaves` false, reaches it.
  bool goes(std::size_t edge, std::uint32_t stage, bool backward, bool leaves) const;
  /// The message of a pass over an edge, which is added to the plan when it is first asked for.
  CommId of(std::size_t edge, const Pass& pass);
  /// In an endless run: sets the number of messages in a step, by pattern of the plan.
  void count_uses(std::vector<double>& uses_per_step) const;

 private:
  std::int64_t slot_count(std::uint32_t stage) const {
    return static_cast<std::int64_t>(passes_.stages[stage].slots.size());
  }
  const std::vector<EndpointId>& devices(std::uint32_t stage, const Pass& pass) const {
    return passes_.stages[stage]
        .slots[static_cast<std::size_t>(pass.micro_batch % slot_count(stage))]
        .devices;
  }
  std::uint32_t meaning_of(const StageEdge& edge, const Pass& pass);

  std::vector<StageEdge> edges_;
  const StagedPasses& passes_;
  Fidelity fidelity_;
  Plan& plan_;
  std::map<std::tuple<std::size_t, bool, std::int64_t>, CommId> messages_;  ///< edge, backward, micro-batch
  std::map<std::tuple<std::size_t, bool, EndpointId, EndpointId>, std::size_t> patterns_;
};

}  // namespace convoy::lowering
