// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/run/simulate.h"

namespace convoy::inline runs {

/// What a run would be on another machine or with another algorithm: links twice as fast, no latency, devices
/// twice as fast, the best all-reduce algorithm (if the strategy has one), an unlimited input pipeline (if
/// there is one), one more server (if the cluster states how many it has).
class Explanation {
 public:
  /// Simulates each change in a process of its own; changes that cannot run are left out. @pre SIGPIPE is
  /// ignored, and nothing was simulated in this process (sim/replay/engine.h)
  /// @param jobs processes at a time
  Explanation(Preparer& preparer, const Point& point, std::size_t jobs);

  /// Fills in counterfactuals of the point's result. A latency bottleneck names the algorithm that remedies
  /// it, and `algorithm: auto` the algorithm that it chose.
  void add_to(RunResult& result) const;

 private:
  struct Row {
    std::string change, algorithm;  ///< algorithm: "" if it is the point's own
    double step_time_s = 0, images = 0;
    std::optional<double> usd_per_epoch = {};
  };
  std::vector<Row> rows_;
};

}  // namespace convoy::runs
