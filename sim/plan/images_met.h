// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy::inline plans {

/// Images that pass through each device in a step: the largest number on which any of its operations works,
/// summed over micro-batches. 0: it works on none.
/// @param devices number of devices of the machine; members of roles with higher numbers are hosts
std::vector<double> images_met(const Plan& plan, std::uint32_t devices);

}  // namespace convoy::plans
