// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/run/preparer.h"

namespace convoy::inline runs {

/// What a run would be with one thing changed at a time: on another machine (links or devices twice as fast,
/// no latency), with other software (execution, precision, layout), another batch, other communication
/// (all-reduce algorithm, bucket, compression), another input pipeline, one more server or NIC
/// (questions_of).
class Explanation {
 public:
  /// Simulates each change in a process of its own. @pre nothing was simulated in
  /// this process (sim/replay/engine.h)
  /// @param point its tree (Experiment::resolved)
  /// @param strategy in place of the point's own; nullptr: none
  /// @param jobs processes at a time
  Explanation(Preparer& preparer, const YamlNode& point, const YamlNode* strategy, std::size_t jobs);

  /// Fills in counterfactuals of the point's result, what gains most first, and the changes that cannot be
  /// tried. A latency bottleneck names the algorithm that remedies it, and `algorithm: auto` the algorithm
  /// that it chose.
  void add_to(RunResult& result) const;

 private:
  struct Row {
    std::string family;  ///< Question::family
    Counterfactual result;
    std::optional<double> usd_per_epoch;
  };
  std::vector<Row> rows_;
  std::vector<RefusedChange> refused_;
};

}  // namespace convoy::runs
