// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/base/yaml_node.h"
#include "sim/schedule/job_trace.h"

namespace convoy {

/// `jobs:` with the file that its `trace` names, a CSV beside the experiment with the columns arrival_s, gpus,
/// length_s and, optional, model and deadline_s, read into a list of such mappings. What has no such file stays as
/// it is. @throws InputError
YamlNode with_trace_read(const YamlNode& jobs);

/// A list of mappings with the keys arrival_s, gpus, length_s, model and deadline_s. @throws InputError
std::vector<TracedJob> read_traced_jobs(const YamlNode& list);

}  // namespace convoy
