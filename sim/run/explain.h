// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// What a run would be on a machine or with an algorithm other than its own: links twice as fast, no latency,
/// devices twice as fast, the best all-reduce algorithm (where the strategy has one), an input pipeline
/// without limit (where there is one), one more server (where the cluster says how many it has).
class Explanation {
 public:
  /// Simulates each change in a process of its own; what cannot run is left out. @pre SIGPIPE is ignored, and
  /// nothing was simulated in this process (sim/replay/engine.h)
  /// @param jobs processes at a time
  Explanation(Preparer& preparer, const Point& point, std::size_t jobs);

  /// Fills counterfactuals of the point's result. A latency bottleneck is told the algorithm that mends it,
  /// and an `algorithm: auto` which one it came to.
  void add_to(RunResult& result) const;

 private:
  struct Row {
    std::string change, algorithm;  ///< algorithm: "" where it is the point's own
    double step_time_s = 0, images = 0;
    std::optional<double> usd_per_epoch = {};
  };
  std::vector<Row> rows_;
};

}  // namespace convoy::runs
