// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: single`: the first device does everything; with `micro_batches: M` the batch in M parts whose
/// gradients are accumulated before one update. Step = M (forward + backward of batch/M) + update.
StrategyEntry single_entry();

}  // namespace convoy::strategies
