// SPDX-License-Identifier: MIT
#pragma once

#include "sim/app/simulate.h"
#include "sim/replay/replay.h"

namespace convoy {

/// The results of a run from what its replay measured (definitions: docs/results.md).
RunResult evaluate(const PreparedRun& run, const ReplayResult& replayed);

}  // namespace convoy
