// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"

namespace convoy::inline results {

/// A policy under one load, over all seeds.
struct ScheduleSummary {
  std::string policy;
  std::int64_t jobs = 0, seeds = 0;
  std::uint64_t first_seed = 0;
  double mean_interval_s = 0;
  double makespan_s = 0, busy_share = 0, changes = 0;              ///< means over the seeds
  std::optional<double> deadlines_met = {}, scattered_share = {},
                        sharing_loss = {};  ///< also means, if there are any
  double mean_completion_s = 0;
  /// Half the width of its 95 % interval (Student's t over the seeds); nothing if there is only one seed.
  std::optional<double> completion_half_width_s = {};

  std::string load_text() const;        ///< "400 jobs, one every 30 s on average (seeds 1 to 10)"
  std::string completion_text() const;  ///< "1.2 h", "1.2 h +- 5 %"
};

/// Schedules that differ only in the seed are combined into one, in the order of the first of each.
std::vector<ScheduleSummary> summaries(const std::vector<ScheduleResult>& schedules);

/// Half the width of the 95 % interval of the mean of these (Student's t). @param values two or more
double half_width_of_mean(const std::vector<double>& values);

}  // namespace convoy::results
