// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/results/write_trace.h"

namespace convoy::inline results {

/// Reads the processes of a trace.json whose names `wanted` accepts, as TraceWriter wrote them, apart from
/// the rounding of times to nanoseconds. The document is never in memory as a whole.
/// @param file its name, for errors
/// @throws InputError: not JSON, cut short, not convoy's
std::vector<TraceProcess> read_trace(std::istream& in, const std::string& file,
                                     const std::function<bool(const std::string& name)>& wanted);

}  // namespace convoy::results
