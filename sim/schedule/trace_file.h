// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_node.h"
#include "sim/schedule/job_trace.h"

namespace convoy::inline schedule {

constexpr std::uint32_t most_gpus_of_all = 100'000;

/// The keys of the jobs in `jobs.trace` and `jobs.workload`, which are also the columns of their files.
std::vector<KeyText> traced_job_columns();
std::vector<KeyText> workload_job_columns();

/// `jobs:` with the file that its `trace` or `workload` names (a CSV relative to the experiment) read into a
/// list of mappings by column. Anything else is not changed. @throws InputError
YamlNode with_trace_read(const YamlNode& jobs);

/// Reads a list of mappings with the keys of traced_job_columns.
/// @param most_gpus the most that a job may ask for. @throws InputError
std::vector<TracedJob> read_traced_jobs(const YamlNode& list, std::uint32_t most_gpus);

/// Reads a list of mappings with the keys of workload_job_columns. @throws InputError
std::vector<WorkloadJob> read_workload_jobs(const YamlNode& list, std::uint32_t most_gpus);

}  // namespace convoy::schedule
