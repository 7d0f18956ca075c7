// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/job.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {

struct ScheduleOutcome {
  std::vector<double> completion_s;  ///< of each job, from its arrival to its end
  double makespan_s = 0;             ///< end of the last job
  double busy_share = 0;             ///< of the GPUs' time up to then that jobs held them
  std::int64_t changes = 0;          ///< of a job's GPUs, its first ones and its end not counted
  double scattered_share = 0;        ///< of the GPUs' time that jobs held them on more hosts than needed
  std::optional<double> deadlines_met = {};  ///< share of the jobs with one; nothing where none has

  double mean_completion_s() const;
};

struct ScheduleOptions {
  std::vector<GpuPool> pools;
  double pause_s = 0;  ///< a job whose GPUs change stands still so long before it goes on
};

/// Runs jobs on a cluster under a policy, event by event. The policy decides when a job arrives or ends, and
/// at its own intervals. Jobs whose GPUs do not change stay on their hosts, all others are placed anew, the
/// largest first.
/// @param jobs by arrival; each asks for at most the GPUs of a pool that it can run on
/// @throws std::runtime_error: a policy that leaves jobs waiting for ever
ScheduleOutcome run_schedule(const std::vector<Job>& jobs, const Policy& policy,
                             const ScheduleOptions& options);

}  // namespace convoy::schedule
