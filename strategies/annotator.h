// SPDX-License-Identifier: MIT
#pragma once

#include "sim/lowering/annotation.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// A strategy that annotates the training graph of a step: who computes what in which order, and how replicas
/// of parameters are kept the same. The lowering writes the programs (sim/lowering/annotation.h).
class Annotator : public Strategy {
 public:
  /// @throws InputError where the strategy cannot run on this machine or batch.
  virtual Annotation annotate(const StrategyInput& input) const = 0;
  ReportedPlan steady_plan(const StrategyInput& input) const final {
    return lower(input.graph, input.machine, input.cost, annotate(input));
  }
};

}  // namespace convoy::strategies
