// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace convoy::inline runs {

struct PreparedRun;

/// What is to be told of a run before it is replayed, a sentence each: what of it rests on no published figure
/// (evidence_warnings), what its strategy has to say, devices that have nothing to do.
std::vector<std::string> warnings_of(const PreparedRun& run);

}  // namespace convoy::runs
