// SPDX-License-Identifier: MIT
#pragma once

#include <compare>

namespace convoy::inline search {

/// Far above the rounding differences between bounds and simulations.
inline constexpr double bound_rounding = 1e-6;

/// A bound, less what rounding may have added.
inline double at_least(double bound) { return bound * (1 - bound_rounding); }

/// The order of candidates: smaller is better, and `time_s` decides if the values are equal.
struct Rank {
  double value = 0;   ///< of the objective
  double time_s = 0;  ///< an image, or of the whole training
  auto operator<=>(const Rank&) const = default;
};

/// Whether a candidate whose best possible rank is `bound` cannot be better than `rank`, apart from rounding.
inline bool cannot_beat(const Rank& bound, const Rank& rank) {
  if (at_least(bound.value) > rank.value) return true;
  return bound.value == rank.value && at_least(bound.time_s) > rank.time_s;
}

}  // namespace convoy::search
