// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// Writes the results for people: one line per run, one block per model; the sweep's other coordinates are the first
/// columns.
void write_table(const SweepResults& results, std::ostream& out);

}  // namespace convoy::results
