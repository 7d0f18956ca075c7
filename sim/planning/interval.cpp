// SPDX-License-Identifier: MIT
#include "sim/planning/interval.h"

namespace convoy::inline planning {

std::pair<double, double> step_interval(const RunResult& result) {
  if (result.interval && result.step_time_s > 0)
    return {result.interval->step_time_s[0] / result.step_time_s,
            result.interval->step_time_s[1] / result.step_time_s};
  // README, Accuracy: 12.4 % mean error on throughputs that nothing was fitted to. If errors are normal,
  // their standard deviation is 12.4 % / sqrt(2 / pi) = 15.5 %, and four of five lie within 1.2816 times
  // that.
  constexpr double four_of_five = 0.124 / 0.79788 * 1.28155;
  return {1 - four_of_five, 1 + four_of_five};
}

}  // namespace convoy::planning
