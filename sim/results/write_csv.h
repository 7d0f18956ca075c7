// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/results/result.h"

namespace convoy::inline results {

/// Writes results.csv (RFC 4180, "\n" as line end) with one row per run: first the sweep's coordinates, then
/// the numbers of results.json that belong to the run as a whole. Unknown values are empty.
void write_csv(const Results& results, std::ostream& out);

}  // namespace convoy::results
