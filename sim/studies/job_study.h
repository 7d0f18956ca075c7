// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/yaml_node.h"
#include "sim/results/result.h"
#include "sim/schedule/job_trace.h"

namespace convoy {

/// `jobs:` of an experiment: a queue of training jobs on a cluster. The runs of the experiment's sweep,
/// models by numbers of devices, are the jobs' throughput.
struct JobStudy {
  std::uint32_t gpus = 1;
  double pause_s = 0;                    ///< when a job's GPUs change
  JobTraceOptions trace;                 ///< without its mean interval
  std::vector<double> mean_intervals_s;  ///< loads: a trace each
  std::vector<std::string> policies;
};

/// @throws InputError
JobStudy read_job_study(const YamlNode& node);

/// Throughput by number of devices of every model among the runs; numbers between two runs are interpolated.
/// @throws InputError (at `jobs:`): a model without a run on one device, two runs of a model on as many
/// devices, a run that does not fit in memory
std::vector<JobKind> job_kinds(const std::vector<RunResult>& runs, const SourcePos& pos);

/// Every trace under every policy, loads and policies in the order given.
std::vector<ScheduleResult> run_job_study(const JobStudy& study, const std::vector<JobKind>& kinds);

}  // namespace convoy
