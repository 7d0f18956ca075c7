// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace convoy::inline runs {

/// A quantity that is constant between the moments at which it changes, over a period that is repeated without
/// end.
class RepeatedCurve {
 public:
  explicit RepeatedCurve(double period_s) : period_s_(period_s) {}
  /// Adds `value` from one time of the period to another one; what lies beyond the period is left out.
  void add(double from_s, double until_s, double value);
  /// Adds `value` at all times.
  void add(double value) { everywhere_ += value; }
  /// The integral from 0 to a time that may lie many periods later.
  double integral(double until_s) const;

 private:
  struct Change {
    double time_s, by;
  };
  struct Level {
    double time_s, value, integral;  ///< from there on; up to there
  };
  void lay_out() const;

  double period_s_, everywhere_ = 0;
  std::vector<Change> changes_;
  mutable std::vector<Level> levels_;  ///< of `changes_`, once they are needed
};

}  // namespace convoy::runs
