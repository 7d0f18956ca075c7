// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "strategies/cost_table.h"
#include "strategies/hybrid/hybrid.h"

namespace convoy::inline strategies {

/// How each layer is split on so many devices; nothing where the options cannot be used on them, or change
/// what devices compute.
std::optional<CostTable::Split> split_of(const HybridOptions& options, std::int64_t devices);

/// Each device runs its part of every operation of every micro-batch, and no part of an operation takes less
/// than least_split_time_s, whatever the layouts are.
std::optional<StepFloor> floor_of_hybrid(const HybridOptions& options, const BatchSpec& batch,
                                         CostTable& table);

}  // namespace convoy::strategies
