// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/run/search/assess.h"
#include "sim/run/simulate.h"
#include "strategies/cost_table.h"

namespace convoy::inline search {

/// The bound of a candidate's step before anything of it is planned: its strategy's floor, from a cost table
/// that all candidates of a search share; nothing where there is none.
/// @param run of the cluster's own hosts, which the table was made from
std::optional<Assessment> prior_bound(const Strategy& strategy, const BatchSpec& batch, const PreparedRun& run,
                                      CostTable& table);

}  // namespace convoy::search
