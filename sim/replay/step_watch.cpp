// SPDX-License-Identifier: MIT
#include "sim/replay/step_watch.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline replays {
namespace {

constexpr double same = 1e-6;

/// Whether `period` steps always take the same time, from every end between `first` and the last one.
bool repeats(const std::vector<double>& end_s, std::size_t first, std::size_t period) {
  const double length_s = end_s[first + period] - end_s[first];
  for (std::size_t k = first; k + period < end_s.size(); ++k)
    if (std::abs(end_s[k + period] - end_s[k] - length_s) > same * length_s) return false;
  return true;
}

}  // namespace

SteadyStretch steady_stretch(const std::vector<double>& end_s) {
  const std::size_t last = end_s.size() - 1, first = last / 2;
  for (std::size_t period = 1; 2 * period <= last - first; ++period)
    if (repeats(end_s, first, period)) return {last - (last - first) / period * period, last};
  return {first, last};
}

StepWatch::StepWatch(const EndlessRun& run, const Folding& folding)
    : run_(run), missing_(run.steps.size(), 0) {
  for (const std::uint32_t role : folding.endpoint_role) {
    classes_of_.resize(std::max<std::size_t>(classes_of_.size(), role + 1));
    ++classes_of_[role];
  }
  for (std::size_t step = 0; step < run.steps.size(); ++step)
    for (const EndlessRun::End& end : run.steps[step]) {
      step_of_[{end.role, end.task}] = step;
      missing_[step] += classes_of_[end.role];
    }
}

bool StepWatch::ends_step(std::uint32_t role, TaskId task) {
  const auto found = step_of_.find({role, task});
  return found != step_of_.end() && --missing_[found->second] == 0 && kept_.size() < run_.steady_steps;
}

StepWatch::Steady StepWatch::steady() const {
  std::vector<double> end_s;
  for (const Readings& readings : kept_) end_s.push_back(readings.now_s);
  const SteadyStretch stretch = steady_stretch(end_s);
  return {kept_[stretch.first], kept_[stretch.last], static_cast<double>(stretch.steps())};
}

}  // namespace convoy::replays
