// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::inline planning {

/// `constraints:` of a plan.
struct PlanConstraints {
  std::optional<double> deadline_s, budget_usd;
  std::optional<std::int64_t> max_devices, max_global_batch;
  double memory = 1;                   ///< share of a device's memory that may be used
  std::vector<std::string> providers;  ///< "aws": what the server's name begins with; empty: any
  SourcePos providers_pos;
};

const Keys<PlanConstraints>& constraint_keys();

}  // namespace convoy::planning
