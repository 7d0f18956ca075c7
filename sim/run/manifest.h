// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/results/result.h"
#include "sim/run/experiment.h"

namespace convoy::inline runs {

/// "0.2.0"
std::string_view version();

/// The origin of the results: versions, and digests of the experiment's file and of its content with
/// settings. The network's model is that of the runs.
/// @param file "": none
Manifest make_manifest(const Experiment& experiment, const std::string& file,
                       const std::vector<std::string>& settings);

}  // namespace convoy::runs
