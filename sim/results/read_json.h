// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/results/result.h"

namespace convoy::inline results {

/// Reads results.json back: write_json writes the same bytes from what it returns. RunResult::network_model
/// is that of the manifest.
/// @param file its name, for errors
/// @throws InputError: not JSON, cut short, not convoy's, a name missing, unknown or given twice, a value of
/// another kind or negative.
Results read_json(std::istream& in, const std::string& file);

}  // namespace convoy::results
