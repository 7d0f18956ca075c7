// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// report.html of a plan: the order, the front drawn, runners-up, what would change the choice, how it was
/// found.
void write_report(const PlanAnswer& answer, std::ostream& out);

}  // namespace convoy::planning
