// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"

namespace convoy::inline results {

/// The results for people: one line per run, one block per model; the sweep's other coordinates are the first
/// columns.
std::string table(const Results& results);

}  // namespace convoy::results
