// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/results/comparison.h"

namespace convoy::inline cli {

/// Results to be compared: a folder of a run, its results.sqlite or its results.json. Stores also say what
/// the runs were computed from; a folder is read from its store where it has one.
/// @throws InputError, OutputError: it is none of them, or damaged
ComparedResults read_compared(const std::string& place);

}  // namespace convoy::cli
