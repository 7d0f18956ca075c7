// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/filter_parallel/filter_shares.h"

namespace convoy::inline strategies {

/// `kind: filter_parallel` as it was read.
struct FilterOptions {
  FilterShares shares = FilterShares::probed;
  EndpointId master = 0;
  bool overlap = false;
  SourcePos master_pos;
};

/// The plan of a step of so many images, as filter_parallel.h has it. @pre options.master is a device
ReportedPlan plan_filters(const FilterOptions& options, const StrategyInput& input, double images);

}  // namespace convoy::strategies
