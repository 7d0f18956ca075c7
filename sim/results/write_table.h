// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/result.h"

namespace convoy::inline results {

/// The results for people: a line a run, a block a model; the sweep's other coordinates as the first columns.
std::string table(const Results& results);

}  // namespace convoy::results
