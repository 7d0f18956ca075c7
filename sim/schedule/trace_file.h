// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_node.h"
#include "sim/schedule/job_trace.h"

namespace convoy::inline schedule {

constexpr std::uint32_t most_gpus_of_all = 100'000;

/// The keys of the jobs in `jobs.trace` and `jobs.workload`, which are the columns of their files.
std::vector<KeyText> traced_job_columns();
std::vector<KeyText> workload_job_columns();

/// `jobs:` with the file that its `trace` or `workload` names, a CSV beside the experiment, read into a list
/// of mappings by column. What has no such file stays as it is. @throws InputError
YamlNode with_trace_read(const YamlNode& jobs);

/// A list of mappings with the keys of traced_job_columns.
/// @param most_gpus that a job may ask for. @throws InputError
std::vector<TracedJob> read_traced_jobs(const YamlNode& list, std::uint32_t most_gpus);

/// A list of mappings with the keys of workload_job_columns. @throws InputError
std::vector<WorkloadJob> read_workload_jobs(const YamlNode& list, std::uint32_t most_gpus);

}  // namespace convoy::schedule
