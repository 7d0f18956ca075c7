// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

namespace convoy::inline planning {

/// A run whose machines may go, as it is expected.
struct ExpectedInterruptions {
  double events = 0;              ///< interruptions of the run
  double time_s = 0, lost_s = 0;  ///< of the run with them; what of it they take
  /// The ends of what is known of the rate, as factors of the one that counts.
  double least_rate = 1, most_rate = 1;
};

/// Where four of five such runs lie.
struct DrawnInterruptions {
  std::pair<double, double> events{0, 0};
  std::pair<double, double> time_factors{1, 1};  ///< of the expected time
};

/// Draws runs: a rate, uniform between the ends; so many interruptions as a Poisson process of
/// that rate has in the expected time; and what each takes, exponential. The same seed every time.
DrawnInterruptions draw_interruptions(const ExpectedInterruptions& expected);

}  // namespace convoy::planning
