// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/plan/plan.h"

namespace convoy {

/// Everyone sends to the first rank at once, which sends the sum to everyone: 2 (alpha + (N - 1) S/B), since
/// the first rank's way in, and then its way out, carries all messages.
Pattern star_all_reduce(const std::vector<EndpointId>& ranks);

}  // namespace convoy
