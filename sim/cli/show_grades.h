// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>

#include "sim/results/json_writer.h"
#include "topologies/sources.h"

namespace convoy::inline cli {

/// "  source of fabric.protocol: assumed: ...", a line each.
void print_sources(std::ostream& out, const Sources& sources);

/// `"grades": {KEY: {"grade", "spread", "source"}}`; the spread is the standard deviation of log(number),
/// null where none is told.
void write_grades(JsonWriter& json, const Sources& sources);

}  // namespace convoy::cli
