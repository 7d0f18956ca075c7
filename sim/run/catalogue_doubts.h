// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/costs/input_pipeline.h"
#include "sim/run/doubts.h"
#include "topologies/cluster.h"

namespace convoy::inline runs {

/// Where the catalogue takes the bandwidth between hosts from something like it, or says a spread of it.
std::optional<Doubt> doubt_of_bandwidth(const ClusterSpec& cluster);

/// Loaders' rates are those of the hosts on which they were measured, unless the experiment says its own.
std::optional<Doubt> doubt_of_loader(const InputSpec& input);

}  // namespace convoy::runs
