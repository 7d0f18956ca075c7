// SPDX-License-Identifier: MIT
#include "sim/planning/read_plan_json.h"

#include <fmt/format.h>

#include <istream>

#include "sim/base/input_error.h"
#include "sim/planning/plan_fields.h"
#include "sim/results/field_reader.h"

namespace convoy::inline planning {

PlanAnswer read_plan_answer(std::istream& in, const std::string& file) {
  try {
    const Json document = parse_json(
        in, "", [](const std::string&, const Json&) {}, [](std::size_t, const Json&) {});
    PlanAnswer answer;
    FieldReader::whole(document, {}, answer, plan_fields);
    return answer;
  } catch (const JsonError& error) {
    throw InputError({file, 0, 0}, fmt::format("is no plan of `convoy plan`: {}", error.what()));
  }
}

}  // namespace convoy::planning
