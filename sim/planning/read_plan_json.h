// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// What write_json wrote, as far as tables and reports need it: candidates' strategies stay behind, and
/// so does what tells shares of a device's memory.
/// @param file its name, for errors. @throws InputError: no JSON, or none of schema convoy.plan/1
PlanAnswer read_plan_answer(std::istream& in, const std::string& file);

}  // namespace convoy::planning
