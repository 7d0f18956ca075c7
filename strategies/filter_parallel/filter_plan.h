// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/filter_parallel/filter_shares.h"

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
};

/// The plan of a step of so many images, as filter_parallel.h has it. @pre options.master is a device
ReportedPlan plan_filters(const FilterOptions& options, const StrategyInput& input, double images);

}  // namespace convoy::strategies
