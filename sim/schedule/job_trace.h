// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy::inline schedule {

constexpr double hour_s = 3600;

/// How a kind of job trains; its jobs have the same model.
struct JobKind {
  std::string model;
  std::vector<Throughput> kinds;  ///< by kind of GPU
};

struct JobTraceOptions {
  std::uint64_t seed = 1;
  std::size_t jobs = 0;
  double mean_interval_s = 0;  ///< between arrivals, exponentially distributed
  /// Length of a job on the GPUs it asks for: log-normal with this median, and this standard deviation of its
  /// logarithm.
  double median_length_s = 0, spread = 0;
  std::vector<std::uint32_t> asked;  ///< numbers of GPUs that owners ask for, with their frequencies
  std::vector<double> asked_weights;
};

/// A job of a recorded trace.
struct TracedJob {
  double arrival_s = 0;
  std::uint32_t asked = 1;
  double length_s = 0;                    ///< on the GPUs asked for
  std::string model = {};                 ///< ""; drawn
  std::optional<double> deadline_s = {};  ///< on the clock of arrivals
};

/// A recorded job of which only the class of its GPU time is known.
struct WorkloadJob {
  double arrival_s = 0;
  std::uint32_t asked = 1;
  double least_gpu_s = 0, most_gpu_s = 0;  ///< GPU time, GPUs times seconds, > 0
};

/// The number of whole hours that contain the arrivals, in seconds.
double workload_window_s(const std::vector<WorkloadJob>& like);

/// Jobs like recorded ones. Each is like a recorded job drawn with replacement: it asks for the same number
/// of GPUs, has a GPU time in the same class (uniform in its logarithm), and arrives at any moment of an hour
/// in which a recorded job did, drawn independently. So GPUs, classes and the shares of the hours are
/// distributed as recorded. Equal seeds give equal jobs.
std::vector<TracedJob> draw_workload(const std::vector<WorkloadJob>& like, std::size_t jobs,
                                     std::uint64_t seed);

/// Deadlines, counted from arrival: distributed uniformly between these multiples of the length on the GPUs
/// asked for.
struct DeadlineOptions {
  double least = 0, most = 0;
};

/// Jobs by arrival, each of a kind drawn uniformly. The same options give the same jobs on every machine
/// (SplitMix64 and inverse transforms, no distributions of a library). A kind whose throughput is not known
/// for that many GPUs asks for what it can use. Lengths are those on the slowest kind of GPU on which a model
/// runs.
std::vector<Job> make_job_trace(const std::vector<JobKind>& kinds, const JobTraceOptions& options);

/// The same for a recorded trace, by arrival; models that it does not state are drawn uniformly. @throws
/// std::runtime_error for a model that is not among the kinds
std::vector<Job> make_job_trace(const std::vector<JobKind>& kinds, const std::vector<TracedJob>& traced,
                                std::uint64_t seed);

/// Gives a deadline to every job that has none.
void draw_deadlines(std::vector<Job>& jobs, const DeadlineOptions& options, std::uint64_t seed);

}  // namespace convoy::schedule
