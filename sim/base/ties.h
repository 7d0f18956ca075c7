// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <vector>

namespace convoy::inline base {

/// Figures that differ by no more than this share are equal. Sums of one run that are added up in another
/// order differ by about 1e-13, while machines that one would call different differ by far more than 1e-9.
inline constexpr double tie_tolerance = 1e-9;

/// Whether a figure (the smaller the better) ties with the best one or is better. "Ties with" is not
/// transitive: comparing figures with each other, instead of with one best figure, does not give an order.
inline bool ties_with_best(double figure, double best) {
  return figure <= best + tie_tolerance * std::abs(best);
}
inline bool ties_with_best(std::integral auto figure, std::integral auto best) { return figure <= best; }

/// Keeps the elements whose figure ties with the least. Which ones are kept does not depend on their order.
template <class T, class Figure>
void keep_least(std::vector<T>& all, Figure figure) {
  if (all.empty()) return;
  auto least = std::invoke(figure, all.front());
  for (const T& each : all) least = std::min(least, std::invoke(figure, each));
  std::erase_if(all, [&](const T& each) { return !ties_with_best(std::invoke(figure, each), least); });
}

}  // namespace convoy::base
