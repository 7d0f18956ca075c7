// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/run/prepared_run.h"
#include "sim/run/search/assess.h"
#include "strategies/cost_table.h"

namespace convoy::inline search {

/// The bound of a candidate's step before anything of it is planned: the floor of its strategy, from a cost
/// table that all candidates of a search share; nothing if there is none.
/// @param run a run on the cluster's own hosts, from which the table was made
std::optional<Assessment> prior_bound(const Strategy& strategy, const BatchSpec& batch,
                                      const PreparedRun& run, CostTable& table);

}  // namespace convoy::search
