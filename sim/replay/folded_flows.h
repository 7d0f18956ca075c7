// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/disturbances.h"
#include "sim/replay/flows.h"
#include "sim/replay/fold.h"
#include "topologies/machine.h"

namespace convoy::inline replays {

/// The flows of a plan on a machine, and which of them are equal. Several replays may share them.
class FoldedFlows {
 public:
  FoldedFlows(std::shared_ptr<FlowTable> table, std::vector<bool> one_by_one,
              std::shared_ptr<Folding> folding)
      : table_(std::move(table)), one_by_one_(std::move(one_by_one)), folding_(std::move(folding)) {}
  const FlowTable& table() const { return *table_; }
  const std::vector<bool>& one_by_one() const { return one_by_one_; }  ///< by pattern (fidelity.h)
  const Folding& folding() const { return *folding_; }
  /// Makes room of what an execution needs and results do not, if nobody shares it.
  void release_execution();

 private:
  std::shared_ptr<FlowTable> table_;
  std::vector<bool> one_by_one_;
  std::shared_ptr<Folding> folding_;
};

/// Lists and folds the flows. A plan's replay, its bound, its replays on faster or slower links and plans for another
/// batch, which differ in their programs, have them in common: where nothing disturbs them they are kept by who sends to
/// whom and by machine, unless there are so few that listing them takes no time, or so many that keeping them takes too
/// much memory. Of the bandwidths of links it only counts which are equal, and whether the ranks of each pattern go one
/// by one with them.
/// @param fold,disturbances as of fold()
FoldedFlows folded_flows(const Plan& plan, const Machine& machine, bool fold = true,
                         const Disturbances& disturbances = {});

}  // namespace convoy::replays
