// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/schedule/job.h"
#include "sim/schedule/places.h"
#include "sim/schedule/policies.h"

namespace convoy::inline schedule {

struct ScheduleOutcome {
  std::vector<double> completion_s;  ///< of each job, from its arrival to its end
  double makespan_s = 0;             ///< end of the last job
  double busy_share = 0;             ///< of the GPUs' time up to then, the share in which jobs held them
  std::int64_t changes = 0;          ///< of a job's GPUs, its first ones and its end not counted
  double scattered_share = 0;        ///< of the GPUs' time, the share with jobs on more hosts than needed
  std::optional<double> deadlines_met = {};  ///< share of the jobs with a deadline; nothing if none has one
  /// Of the time of GPUs that train, the share that jobs lose because others send over the same links.
  double sharing_loss = 0;

  double mean_completion_s() const;
};

/// A job that holds GPUs, and where.
struct PlacedJob {
  const Job* job;
  std::uint32_t gpus;
  const Places::Place* place;
};

struct ScheduleOptions {
  std::vector<GpuPool> pools;
  double pause_s = 0;  ///< a job whose GPUs change stands still for this long
  /// How many times as long each of the jobs that hold GPUs, in the order of arrival, trains for an image
  /// beside the others as it would alone where it is. None: jobs do not slow each other down.
  std::function<std::vector<double>(const std::vector<PlacedJob>& jobs)> slowdowns = {};
};

/// Runs jobs on a cluster under a policy, event by event. The policy decides when a job arrives or ends, and
/// at its own intervals. Jobs whose GPUs do not change stay on their hosts; all others are placed again, the
/// largest first. Policies decide as if jobs did not slow each other down.
/// @param jobs by arrival; each asks for at most the GPUs of a pool on which it can run
/// @throws std::runtime_error: the policy leaves jobs waiting for ever
ScheduleOutcome run_schedule(const std::vector<Job>& jobs, const Policy& policy,
                             const ScheduleOptions& options);

}  // namespace convoy::schedule
