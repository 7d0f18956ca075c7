// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_node.h"
#include "sim/planning/convergence.h"
#include "sim/results/sweep_results.h"
#include "sim/schedule/job_trace.h"
#include "sim/schedule/schedule.h"

namespace convoy::inline studies {

/// How fast a model learns, by global batch.
struct Learning {
  std::optional<ConvergenceTable> table;     ///< either
  std::optional<double> noise_scale_images;  ///< or
  double batch = 0;                          ///< with which jobs train under policies that do not choose it
  /// Epochs, up to a factor that is the same for all batches. Nothing if the batch lies outside the table.
  std::optional<double> epochs(double at_batch) const;
};

/// `jobs:` of an experiment: a queue of training jobs on a cluster. The runs of the experiment's sweep, for
/// several models and numbers of devices, give the throughput of the jobs.
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
  /// `cluster:` whose links the jobs share (shared_links.h); nothing: they share none.
  std::optional<YamlNode> cluster;
};

/// @throws InputError
JobStudy read_job_study(const YamlNode& node);

/// The keys of `jobs`, for `convoy show keys`.
KeySection job_keys();

/// Throughput of the models among the runs, for policies that leave the batch to the owner, and for those
/// that choose it, which count images by how much they teach.
struct JobKinds {
  std::vector<JobKind> as_asked, best_batch;
};

/// Throughput of every model among the runs, by kind of device, number of devices and hosts; numbers between
/// two runs are interpolated.
/// @throws InputError (at `jobs:`): a model without a run on one device, two runs of a model that nothing
/// distinguishes, a run that does not fit in memory, several batches without `convergence`, several numbers
/// of hosts without `gpus_per_host`
JobKinds job_kinds(const SweepResults& results, const JobStudy& study, const SourcePos& pos);

/// Runs every trace under every policy and seed; loads, policies and seeds are in the given order.
/// @param slowdowns ScheduleOptions::slowdowns
/// @throws InputError (at `pos`): the model of a traced job is not among the kinds
std::vector<ScheduleResult> run_job_study(
    const JobStudy& study, const JobKinds& kinds, const SourcePos& pos,
    const std::function<std::vector<double>(const std::vector<PlacedJob>&)>& slowdowns = {});

}  // namespace convoy::studies
