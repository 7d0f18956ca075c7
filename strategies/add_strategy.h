// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// Adds a kind of strategies behind those of the registry, for programs that are built with convoy as a library
/// (docs/extending.md, "In a program of your own").
/// @pre nothing has looked at the registry yet: called at the beginning of main
/// @throws std::logic_error where that is not so, or where there is a strategy of that kind
void add_strategy(StrategyEntry entry);

}  // namespace convoy::strategies
