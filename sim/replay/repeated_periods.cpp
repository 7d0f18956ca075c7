// SPDX-License-Identifier: MIT
#include "sim/replay/repeated_periods.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/plan/repetition.h"

namespace convoy::inline replays {
namespace {

constexpr double same_cycle[] = {1e-12,
                                 1e-11};    ///< relative to a cycle: as sought first, and where none is so
constexpr double rounding_of_time = 1e-15;  ///< relative to the time since the beginning
constexpr std::uint32_t listed_times = 4;   ///< so many times as many periods are listed where too few were

/// @param within_s what is the same may differ by this, and by the rounding of the clock
bool are_same(double a_s, double b_s, double within_s, double now_s) {
  return std::abs(a_s - b_s) <= within_s + rounding_of_time * now_s;
}

std::uint32_t first_class_that_repeats(const Plan& plan, const Folding& folding) {
  std::uint32_t c = 0;
  while (!plan.roles[folding.endpoint_role[c]].repeats) ++c;
  return c;
}

std::vector<double> clocks_of(const Readings& readings) {
  std::vector<double> clocks = readings.link_busy_s;
  clocks.insert(clocks.end(), readings.port_busy_s.begin(), readings.port_busy_s.end());
  for (const DeviceTimes& times : readings.times)
    for (const double each_s :
         {times.compute_s, times.issue_wait_s, times.comm.exposed_s, times.comm.hidden_s, times.comm.slack_s})
      clocks.push_back(each_s);
  return clocks;
}

}  // namespace

RepeatedPeriods::RepeatedPeriods(const Plan& plan, const Folding& folding)
    : plan_(plan),
      counted_(first_class_that_repeats(plan, folding)),
      counts_(*plan.roles[folding.endpoint_role[counted_]].repeats),
      half_(counts_.listed / 2) {}

bool RepeatedPeriods::ends_period(std::uint32_t endpoint_class, TaskId task) const {
  return endpoint_class == counted_ && task >= counts_.first + half_ * counts_.tasks &&
         task < counts_.end() && (task + 1 - counts_.first) % counts_.tasks == 0;
}

std::optional<RepeatedPeriods::Cycle> RepeatedPeriods::cycle(const std::vector<Timeline>& timelines,
                                                             std::uint32_t periods, double same) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (kept_.size() < 2 * std::size_t{periods} + 1) return std::nullopt;
  const double length_s = kept_[periods].now_s - kept_.front().now_s;
  if (length_s <= 0) return std::nullopt;
  const double within_s = same * length_s;
  // Tasks that were compared overlap with all of the time from `from_s` to `until_s`, and no others do.
  double from_s = 0, until_s = never, last_s = never;
  for (const Timeline& timeline : timelines) {
    if (!does_something(timeline)) continue;
    const RepeatedTasks& own = repeats(timeline);
    const std::vector<TaskTimes>& tasks = timeline.tasks;
    const TaskId begin = own.first + half_ * own.tasks, end = own.end() - periods * own.tasks;
    for (TaskId t = begin; t < end; ++t) {
      const TaskTimes &one = tasks[t], &other = tasks[t + periods * own.tasks];
      if (!are_same(other.start_s - one.start_s, length_s, within_s, other.start_s) ||
          !are_same(other.end_s - one.end_s, length_s, within_s, other.end_s))
        return std::nullopt;
    }
    for (TaskId t = 0; t < begin; ++t) from_s = std::max(from_s, tasks[t].end_s);
    for (TaskId t = end; t < tasks.size(); ++t) until_s = std::min(until_s, tasks[t].start_s);
    for (TaskId t = own.end(); t < tasks.size(); ++t) last_s = std::min(last_s, tasks[t].start_s);
  }
  for (std::size_t open = kept_.size() - periods; open-- > periods;) {
    const Cycle found{periods, same, &kept_[open], &kept_[open + periods]};
    if (found.open->now_s > until_s || found.close->now_s > last_s) continue;
    if (found.open->now_s - length_s < from_s) break;
    if (is_like_before(found, open)) return found;
  }
  return std::nullopt;
}

/// Of those that are the most exact.
std::optional<RepeatedPeriods::Cycle> RepeatedPeriods::shortest_cycle(
    const std::vector<Timeline>& timelines) const {
  for (const double same : same_cycle)
    for (std::uint32_t periods = 1; periods <= counts_.listed / 4; ++periods)
      if (const std::optional<Cycle> found = cycle(timelines, periods, same)) return found;
  return std::nullopt;
}

/// Whether the clocks went on as in the cycle before.
bool RepeatedPeriods::is_like_before(const Cycle& cycle, std::size_t open) const {
  const std::vector<double> before = clocks_of(kept_[open - cycle.periods]), between = clocks_of(*cycle.open),
                            after = clocks_of(*cycle.close);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!are_same(between[i] - before[i], after[i] - between[i], 4 * cycle.same * cycle.length_s(),
                  4 * cycle.close->now_s))
      return false;
  return true;
}

bool RepeatedPeriods::hosts_keep_up(const Cycle& cycle, const Readings& now,
                                    const std::function<double(std::uint32_t, TaskId)>& issued_s,
                                    const std::vector<Timeline>& timelines) const {
  const double length_s = cycle.length_s(), within_s = cycle.same * length_s;
  for (std::uint32_t c = 0; c < timelines.size(); ++c) {
    if (!does_something(timelines[c])) continue;
    const RepeatedTasks& own = repeats(timelines[c]);
    const TaskId last = own.end() - 1;
    const double issue_s = issued_s(c, last) - issued_s(c, last - cycle.periods * own.tasks);
    if (are_same(issue_s, length_s, 4 * within_s, 4 * now.now_s))
      continue;  // it sets the pace, or is as fast
    if (issue_s > length_s) return false;
    const double waited_s = now.times[c].issue_wait_s - cycle.open->times[c].issue_wait_s;
    if (!are_same(waited_s, 0, within_s, now.now_s)) return false;
  }
  return true;
}

void RepeatedPeriods::add_left_out(const Readings& now,
                                   const std::function<double(std::uint32_t, TaskId)>& issued_s,
                                   Execution& execution) const {
  const std::optional<Cycle> found = shortest_cycle(execution.timelines);
  if (!found || !hosts_keep_up(*found, now, issued_s, execution.timelines)) {
    execution.periods_missing = std::uint64_t{listed_times - 1} * counts_.listed;
    return;
  }
  if (const std::uint64_t rest = counts_.left_out % found->periods; rest > 0) {
    execution.periods_missing = rest;
    return;
  }
  const double cycles = static_cast<double>(counts_.left_out / found->periods);
  const double later_s = cycles * found->length_s();
  for (std::size_t c = 0; c < execution.usage.size(); ++c) {
    if (!does_something(execution.timelines[c])) continue;
    Execution::Usage& usage = execution.usage[c];
    usage.times = usage.times + (found->close->times[c] - found->open->times[c]) * cycles;
    usage.end_s += later_s;
    for (TaskId t = repeats(execution.timelines[c]).end(); t < execution.timelines[c].tasks.size(); ++t) {
      execution.timelines[c].tasks[t].start_s += later_s;
      execution.timelines[c].tasks[t].end_s += later_s;
    }
  }
  execution.end_s += later_s;
  const auto add = [&](std::vector<double>& sum_s, const std::vector<double>& open_s,
                       const std::vector<double>& close_s) {
    for (std::size_t i = 0; i < sum_s.size(); ++i) sum_s[i] += cycles * (close_s[i] - open_s[i]);
  };
  add(execution.link_busy_s, found->open->link_busy_s, found->close->link_busy_s);
  add(execution.port_busy_s, found->open->port_busy_s, found->close->port_busy_s);
}

}  // namespace convoy::replays
