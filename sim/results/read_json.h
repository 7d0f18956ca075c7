// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/results/result.h"

namespace convoy::inline results {

/// Reads results.json back: write_json of what it returns gives the same bytes. RunResult::network_model is
/// the manifest's.
/// @param file its name, for errors
/// @throws InputError: not JSON, cut short, not convoy's, a name missing, unknown or there twice, a value of
/// another kind or below zero.
Results read_json(std::istream& in, const std::string& file);

}  // namespace convoy::results
