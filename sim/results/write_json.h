// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// Writes results.json, run by run and device by device.
/// @param also gets each run, whole, with its index in the results: those of a large sweep are read for this
void write_json(const SweepResults& results, std::ostream& out,
                const std::function<void(const RunResult& run, std::size_t index)>& also = {});

/// JSON Schema of it.
std::string results_schema_text();

}  // namespace convoy::results
