// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/results/result.h"

namespace convoy::inline results {

/// Writes results.json, run by run and device by device.
void write_json(const Results& results, std::ostream& out);

/// JSON Schema of it.
std::string results_schema_text();

}  // namespace convoy::results
