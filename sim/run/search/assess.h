// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "sim/run/prepared_run.h"
#include "sim/run/search/search_spec.h"
#include "sim/search/rank.h"

namespace convoy::inline search {

/// The step of workers without a common one is the mean of a measurement (replay/steady_state.h), which begins and ends in
/// the middle of what is sent and prepared: by tests, that makes it shorter than its bound by a smaller share at most.
inline constexpr double measurements_differ = 2e-3;

/// What is known about a planned candidate before it is simulated.
struct Assessment {
  std::string label;
  double images = 0;  ///< per step
  /// replay/lower_bound.h, of workers without a common step less measurements_differ
  double step_bound_s = 0;
  /// Of it, what the hosts need for the images of a step: exact, where the rest is but for rounding (at_least).
  double input_step_s = 0;
  double running_s = 0;  ///< operations of the busiest device, without waiting; 0 where steps are means
  double energy_bound_j = 0;
  std::string bound_text;  ///< why the step cannot be shorter
  std::optional<double> price_usd_per_h;
  std::optional<double> samples;
  /// On the device that is fullest by share, over all phases; exactly what the simulation reports.
  double peak_bytes = 0;
  double process_bytes = 0;  ///< of the fullest process, on device `fullest`
  bool fits = true;
  std::string fullest;            ///< its name
  double fullest_size_bytes = 0;  ///< what its driver leaves to processes

  /// Whether it fits in this share of a device's memory.
  bool fits_in(double share) const { return fits && peak_bytes <= share * fullest_size_bytes; }
};

Assessment assess(const PreparedRun& run);

/// The rank of a simulated candidate: s or J an image, USD an epoch, or bytes; then s an image.
Rank rank_of(Objective objective, const RunResult& result);

/// No simulation of the candidate has a better rank. @pre for cost: price and samples are known
Rank best_rank(Objective objective, const Assessment& assessment);

}  // namespace convoy::search
