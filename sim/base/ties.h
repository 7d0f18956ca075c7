// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <vector>

namespace convoy::inline base {

/// Figures that differ by no more than this share are equal. Sums of one run that are added up in another
/// order differ by some 1e-13 of themselves, machines that one would call different by far more than 1e-9.
inline constexpr double tie_tolerance = 1e-9;

/// Whether a figure, of which less is better, ties with the best one or is better. "Ties with" is not
/// transitive: what is compared with one another rather than with one best figure has no order.
inline bool ties_with_best(double figure, double best) {
  return figure <= best + tie_tolerance * std::abs(best);
}
inline bool ties_with_best(std::integral auto figure, std::integral auto best) { return figure <= best; }

/// Leaves those whose figure ties with the least. What is left does not depend on their order.
template <class T, class Figure>
void keep_least(std::vector<T>& all, Figure figure) {
  if (all.empty()) return;
  auto least = std::invoke(figure, all.front());
  for (const T& each : all) least = std::min(least, std::invoke(figure, each));
  std::erase_if(all, [&](const T& each) { return !ties_with_best(std::invoke(figure, each), least); });
}

}  // namespace convoy::base
