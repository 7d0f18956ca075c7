// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/job.h"

namespace convoy {

/// How a kind of job trains: the same model and batch.
struct JobKind {
  std::string model;
  std::vector<double> throughput;  ///< as Job::throughput
};

struct JobTraceOptions {
  std::uint64_t seed = 1;
  std::size_t jobs = 0;
  double mean_interval_s = 0;  ///< between arrivals, exponentially distributed
  /// Length of a job on the GPUs it asks for: log-normal with this median, and the standard deviation of its
  /// logarithm.
  double median_length_s = 0, spread = 0;
  std::vector<std::uint32_t> asked;  ///< GPUs that owners ask for, and how often each
  std::vector<double> asked_weights;
};

/// Jobs by arrival, each of a kind drawn evenly. The same options give the same jobs on every machine
/// (SplitMix64 and inverse transforms, no library's distributions). A kind whose throughput does not reach
/// that far asks for what it can use.
std::vector<Job> make_job_trace(const std::vector<JobKind>& kinds, const JobTraceOptions& options);

}  // namespace convoy
