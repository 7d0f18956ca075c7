// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// Images that pass through each device in a step: most that any of its operations works on, over
/// micro-batches. 0: it works on none.
/// @param devices the machine's; members of roles beyond them are hosts
std::vector<double> images_met(const Plan& plan, std::uint32_t devices);

}  // namespace convoy::plans
