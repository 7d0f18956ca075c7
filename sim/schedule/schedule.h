// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/job.h"
#include "sim/schedule/policies.h"

namespace convoy {

struct ScheduleOutcome {
  std::vector<double> completion_s;  ///< of each job, from its arrival to its end
  double makespan_s = 0;             ///< end of the last job
  double busy_share = 0;             ///< of the GPUs' time up to then that jobs held them
  std::int64_t changes = 0;          ///< of a job's GPUs, its first ones and its end not counted

  double mean_completion_s() const;
};

struct ScheduleOptions {
  std::uint32_t gpus = 1;
  double pause_s = 0;  ///< a job whose GPUs change stands still so long before it goes on
};

/// Runs jobs on a cluster under a policy, event by event. The policy decides when a job arrives or ends, and
/// at its own intervals.
/// @param jobs by arrival; each asks for at most options.gpus
/// @throws std::runtime_error: a policy that leaves jobs waiting for ever
ScheduleOutcome run_schedule(const std::vector<Job>& jobs, const Policy& policy,
                             const ScheduleOptions& options);

}  // namespace convoy
