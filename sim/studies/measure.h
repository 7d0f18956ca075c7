// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/run/doubts.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline studies {

/// The cheapest measurement of a doubtful number of a run: a command, or lines to paste, that print what is to be
/// written under its key.
std::string measurement_of(const PreparedRun& run, const Doubt& doubt);

}  // namespace convoy::studies
