// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace convoy::inline results {

/// Whether a coordinate of a sweep's point only determines the number of devices: cluster.nodes,
/// cluster.devices_per_node, cluster.*.count, and training.global_batch, which grows with them.
inline bool counts_devices(std::string_view path) {
  return path == "cluster.nodes" || path == "cluster.devices_per_node" || path == "training.global_batch" ||
         (path.starts_with("cluster.") && path.ends_with(".count"));
}

}  // namespace convoy::results
