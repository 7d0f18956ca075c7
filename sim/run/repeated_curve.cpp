// SPDX-License-Identifier: MIT
#include "sim/run/repeated_curve.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline runs {

void RepeatedCurve::add(double from_s, double until_s, double value) {
  from_s = std::max(0.0, from_s), until_s = std::min(period_s_, until_s);
  if (value == 0 || from_s >= until_s) return;
  changes_.push_back({from_s, value});
  changes_.push_back({until_s, -value});
  levels_.clear();
}

void RepeatedCurve::lay_out() const {
  std::vector<Change> changes = changes_;
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time_s < b.time_s; });
  levels_ = {{0, 0, 0}};
  for (const Change& change : changes) {
    const Level& before = levels_.back();
    levels_.push_back({change.time_s, before.value + change.by,
                       before.integral + before.value * (change.time_s - before.time_s)});
  }
}

double RepeatedCurve::integral(double until_s) const {
  double sum = everywhere_ * until_s;
  if (changes_.empty()) return sum;
  if (levels_.empty()) lay_out();
  const auto within = [&](double time_s) {
    const auto after = std::upper_bound(levels_.begin(), levels_.end(), time_s,
                                        [](double time, const Level& level) { return time < level.time_s; });
    const Level& level = *std::prev(after);
    return level.integral + level.value * (time_s - level.time_s);
  };
  const double periods = std::floor(until_s / period_s_);
  return sum + periods * within(period_s_) +
         within(std::clamp(until_s - periods * period_s_, 0.0, period_s_));
}

}  // namespace convoy::runs
