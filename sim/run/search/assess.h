// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "sim/run/search/search_spec.h"
#include "sim/run/simulate.h"

namespace convoy::inline search {

/// What is known of a planned candidate before it is simulated.
struct Assessment {
  std::string label;
  double images = 0;        ///< of a step
  double step_bound_s = 0;  ///< replay/lower_bound.h
  double energy_bound_j = 0;
  std::string bound_text;  ///< what the step cannot go below and why
  std::optional<double> price_usd_per_h;
  std::optional<double> samples;
  /// Of the fullest device by share, over all phases; exactly what the simulation reports.
  double peak_bytes = 0;
  double process_bytes = 0;  ///< of the fullest process, on device `fullest`
  bool fits = true;
  std::string fullest;            ///< its name
  double fullest_size_bytes = 0;  ///< what its driver leaves to processes
};

Assessment assess(const PreparedRun& run);

/// By which candidates are compared: smaller is better, `time_s` where the values are equal.
struct Rank {
  double value = 0;   ///< of the objective: s or J an image, USD an epoch, bytes
  double time_s = 0;  ///< an image
  auto operator<=>(const Rank&) const = default;
};

/// Of a simulated candidate.
Rank rank_of(Objective objective, const RunResult& result);

/// No simulation ranks before it. @pre for cost: price and samples are known
Rank best_rank(Objective objective, const Assessment& assessment);

/// Whether what ranks at best at `bound` cannot rank before `rank`, rounding aside.
bool cannot_beat(const Rank& bound, const Rank& rank);

}  // namespace convoy::search
