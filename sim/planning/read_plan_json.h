// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/planning/answer.h"

namespace convoy::inline planning {

/// What write_json wrote (plan_fields.h).
/// @param file its name, for errors. @throws InputError: no JSON, or no document with exactly these fields
PlanAnswer read_plan_answer(std::istream& in, const std::string& file);

}  // namespace convoy::planning
