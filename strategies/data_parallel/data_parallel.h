// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: data_parallel`: every device a replica; `sync: all_reduce` or `parameter_server`.
StrategyEntry data_parallel_entry();

}  // namespace convoy::strategies
