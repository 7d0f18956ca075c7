// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: single`: the first device does everything; with `micro_batches: M` the batch in M parts whose
/// gradients are accumulated before one update. Step = M (forward + backward of batch/M) + update.
StrategyEntry single_entry();

/// The plan of `single` for a batch: what other strategies answer where there is one device.
/// @param batch divides into micro_batches
Plan single_plan(const StrategyInput& input, std::int64_t batch, std::int64_t micro_batches);

}  // namespace convoy::strategies
