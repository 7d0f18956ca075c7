// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/yaml_node.h"
#include "sim/schedule/job_trace.h"

namespace convoy {

/// `jobs:` with the file that its `trace` or `workload` names, a CSV beside the experiment, read into a list of
/// mappings by column: of a trace arrival_s, gpus, length_s and, optional, model and deadline_s; of a workload
/// arrival_s, gpus, least_gpu_h and most_gpu_h. What has no such file stays as it is. @throws InputError
YamlNode with_trace_read(const YamlNode& jobs);

/// A list of mappings with the keys arrival_s, gpus, length_s, model and deadline_s.
/// @param most_gpus that a job may ask for. @throws InputError
std::vector<TracedJob> read_traced_jobs(const YamlNode& list, std::uint32_t most_gpus);

/// A list of mappings with the keys arrival_s, gpus, least_gpu_h and most_gpu_h. @throws InputError
std::vector<WorkloadJob> read_workload_jobs(const YamlNode& list, std::uint32_t most_gpus);

}  // namespace convoy
