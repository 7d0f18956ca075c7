// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

#include "strategies/partition/schedule.h"

namespace convoy::inline partition {

/// Whether a placement may be taken (memory); null: any may.
using Acceptable = std::function<bool(const Placement&)>;

/// The graph placed anew while it is scheduled in the order of readiness: each unit goes where its first
/// operation starts earliest, and, for the share `pull` of the decision, where the longest way on through its
/// children, as `prior` places them, ends earliest.
Placement place_in_ready_order(const ReadyOrder& judge, const Placement& prior, double pull);

/// Shortens the makespan that `judge` gives (ParDNN, refinement): placing anew, around the placement that is
/// there, and moves of units on the longest chain of its schedule. The effort depends on the size of the
/// graph only. Never worse than `placement`; the same for the same input.
Placement refine(ReadyOrder& judge, Placement placement, const Acceptable& acceptable = nullptr);

}  // namespace convoy::partition
