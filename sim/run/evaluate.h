// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "sim/replay/replay.h"
#include "sim/run/simulate.h"

namespace convoy {

/// The results of a run from what its replay measured (definitions: docs/results.md).
RunResult evaluate(const PreparedRun& run, const ReplayResult& replayed);

/// USD of an hour of all hosts, dedicated servers too; nothing where a price is unknown.
std::optional<double> price_usd_per_h(const Machine& machine);

}  // namespace convoy
