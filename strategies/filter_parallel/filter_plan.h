// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/filter_parallel/filter_shares.h"
#include "strategies/placed_replicas.h"

namespace convoy::inline strategies {

/// How inputs, which every worker needs whole, get to the workers, and the partial gradients of inputs, which are
/// added up, back.
enum class InputBroadcast : std::uint8_t {
  direct,             ///< all of it from the master to each worker, and back
  scatter_allgather,  ///< by parts: see filter_parallel.h
};
inline const std::vector<std::string> input_broadcast_names{"direct", "scatter_allgather"};

/// `kind: filter_parallel` as it was read.
struct FilterOptions {
  FilterShares shares = FilterShares::probed;
  EndpointId master = 0;
  bool overlap = false;
  InputBroadcast broadcast = InputBroadcast::direct;
  SourcePos master_pos;
  PlacedReplicas placed;
};

/// Micro-batches of so many images on the first devices of the machine, and on as many for each further replica,
/// as filter_parallel.h has it. @pre options.master is one of these devices
Annotation annotate_filters(const FilterOptions& options, const StrategyInput& input, std::uint32_t devices,
                            double images);

}  // namespace convoy::strategies
