// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/replay/busy_clock.h"
#include "sim/replay/fold.h"

namespace convoy::inline replays {

/// All clocks of a replay at one moment.
struct Readings {
  double now_s = 0;
  std::vector<double> link_busy_s, port_busy_s;  ///< by link class, by port
  std::vector<DeviceTimes> times;                ///< by endpoint class
  std::vector<double> adding_s;                  ///< by endpoint class
};

/// A sequence of whole steps: those after the end of number `first`, up to the end of number `last`.
struct SteadyStretch {
  std::size_t first = 0, last = 0;
  std::size_t steps() const { return last - first; }
};

/// Where a run whose steps end at these times (ascending, at least one) is steady: the largest number of
/// whole periods in the second half of the steps if it is periodic, or otherwise all of that half, so that
/// the mean over the stretch comes close. A period is the smallest number of steps that always takes the same
/// time, to within 1e-6; resources that are used in turn make steps come in bursts.
SteadyStretch steady_stretch(const std::vector<double>& end_s);

/// Watches for the ends of the steps of a plan's EndlessRun.
class StepWatch {
 public:
  StepWatch(const EndlessRun& run, const Folding& folding);
  /// A class of a role has done a task. Returns whether that ends a step, whose readings then have to be
  /// kept.
  bool ends_step(std::uint32_t role, TaskId task);
  void keep(Readings readings) { kept_.push_back(std::move(readings)); }
  /// Readings at both ends of the steady stretch, and its number of steps.
  struct Steady {
    const Readings &open, &close;
    double steps;
  };
  Steady steady() const;

 private:
  const EndlessRun& run_;
  std::map<std::pair<std::uint32_t, TaskId>, std::size_t> step_of_;  ///< by role and task
  std::vector<std::uint32_t> classes_of_;                            ///< by role
  std::vector<std::uint32_t> missing_;                               ///< by step
  std::vector<Readings> kept_;                                       ///< in the order in which steps end
};

}  // namespace convoy::replays
