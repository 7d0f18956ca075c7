// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_node.h"
#include "sim/planning/convergence.h"
#include "sim/results/result.h"
#include "sim/schedule/job_trace.h"

namespace convoy::inline studies {

/// How fast a model learns by global batch.
struct Learning {
  std::optional<ConvergenceTable> table;     ///< either
  std::optional<double> noise_scale_images;  ///< or
  double batch = 0;                          ///< that jobs train with under policies that do not choose it
  /// Epochs, up to a factor that is the same for all batches. Nothing where the batch lies outside the table.
  std::optional<double> epochs(double at_batch) const;
};

/// `jobs:` of an experiment: a queue of training jobs on a cluster. The runs of the experiment's sweep,
/// models by numbers of devices, are the jobs' throughput.
struct JobStudy {
  std::vector<std::string> kinds;  ///< names of the pools' devices; {""}: whatever the runs have
  std::vector<GpuPool> pools;
  double pause_s = 0;                    ///< when a job's GPUs change
  JobTraceOptions trace;                 ///< without its mean interval
  std::vector<double> mean_intervals_s;  ///< loads: a trace each
  std::vector<TracedJob> traced;         ///< instead of drawn jobs
  std::vector<WorkloadJob> workload;     ///< likewise: jobs like these are drawn
  std::optional<DeadlineOptions> deadlines;
  std::map<std::string, Learning, std::less<>> learning;  ///< by model
  std::vector<std::uint64_t> seeds;
  std::vector<std::string> policies;
};

/// @throws InputError
JobStudy read_job_study(const YamlNode& node);

/// What `convoy show keys` tells of `jobs`.
KeySection job_keys();

/// Throughput of the models among the runs, for policies that leave the batch to the owner and for those that
/// choose it, which counts images by what they teach.
struct JobKinds {
  std::vector<JobKind> as_asked, best_batch;
};

/// Throughput by kind of device, number of devices and hosts of every model among the runs; numbers between
/// two runs are interpolated.
/// @throws InputError (at `jobs:`): a model without a run on one device, two runs of a model that nothing
/// tells apart, a run that does not fit in memory, batches without what they teach, hosts without
/// `gpus_per_host`
JobKinds job_kinds(const std::vector<RunResult>& runs, const JobStudy& study, const SourcePos& pos);

/// Every trace under every policy and seed, loads, policies and seeds in the order given.
/// @throws InputError (at `pos`): a traced job's model is not among the kinds
std::vector<ScheduleResult> run_job_study(const JobStudy& study, const JobKinds& kinds, const SourcePos& pos);

}  // namespace convoy::studies
