// SPDX-License-Identifier: MIT
#include "sim/results/schedule_summary.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "sim/base/students_t.h"

namespace convoy::inline results {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> each(const std::vector<const ScheduleResult*>& of,
                         const std::function<double(const ScheduleResult&)>& value) {
  std::vector<double> values;
  for (const ScheduleResult* s : of) values.push_back(value(*s));
  return values;
}

ScheduleSummary summary(const std::vector<const ScheduleResult*>& of) {
  const ScheduleResult& first = *of.front();
  ScheduleSummary result{first.policy, first.jobs, static_cast<std::int64_t>(of.size()), first.seed,
                         first.mean_interval_s};
  result.makespan_s = mean(each(of, [](const ScheduleResult& s) { return s.makespan_s; }));
  result.busy_share = mean(each(of, [](const ScheduleResult& s) { return s.busy_share; }));
  result.changes = mean(each(of, [](const ScheduleResult& s) { return static_cast<double>(s.changes); }));
  if (first.deadlines_met)
    result.deadlines_met =
        mean(each(of, [](const ScheduleResult& s) { return s.deadlines_met.value_or(0); }));
  if (first.scattered_share)
    result.scattered_share =
        mean(each(of, [](const ScheduleResult& s) { return s.scattered_share.value_or(0); }));
  if (first.sharing_loss)
    result.sharing_loss = mean(each(of, [](const ScheduleResult& s) { return s.sharing_loss.value_or(0); }));
  const std::vector<double> completions =
      each(of, [](const ScheduleResult& s) { return s.mean_completion_s; });
  result.mean_completion_s = mean(completions);
  if (completions.size() > 1) result.completion_half_width_s = half_width_of_mean(completions);
  return result;
}

}  // namespace

double half_width_of_mean(const std::vector<double>& values) {
  const double middle = mean(values), count = static_cast<double>(values.size());
  double squares = 0;
  for (const double v : values) squares += (v - middle) * (v - middle);
  const double t = students_t_quantile(count - 1, 0.975);
  return t * std::sqrt(squares / (count - 1) / count);
}

std::string ScheduleSummary::load_text() const {
  const std::string of = seeds == 1 ? fmt::format("seed {}", first_seed)
                                    : fmt::format("seeds {} to {}", first_seed,
                                                  first_seed + static_cast<std::uint64_t>(seeds) - 1);
  return fmt::format("{} jobs, one every {} on average ({})", jobs, format_time(mean_interval_s), of);
}

std::string ScheduleSummary::completion_text() const {
  std::string text = format_time(mean_completion_s);
  if (completion_half_width_s)
    text += fmt::format(" \u00b1 {:.0f} %", 100 * *completion_half_width_s / mean_completion_s);
  return text;
}

std::vector<ScheduleSummary> summaries(const std::vector<ScheduleResult>& schedules) {
  std::vector<std::vector<const ScheduleResult*>> groups;
  for (const ScheduleResult& s : schedules) {
    const bool same = !groups.empty() && groups.back().front()->policy == s.policy &&
                      groups.back().front()->mean_interval_s == s.mean_interval_s;
    if (!same) groups.emplace_back();
    groups.back().push_back(&s);
  }
  std::vector<ScheduleSummary> result;
  for (const auto& group : groups) result.push_back(summary(group));
  return result;
}

}  // namespace convoy::results
