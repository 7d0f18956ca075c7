// SPDX-License-Identifier: MIT
#pragma once

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// The constraint that is nearest to letting a candidate through; where no single one is to blame, what
/// became of the candidates. @pre nothing keeps the constraints of the scenario
NearestConstraint nearest_constraint(Planner& planner, const Scenario& scenario);

}  // namespace convoy::planning
