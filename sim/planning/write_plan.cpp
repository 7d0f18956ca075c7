// SPDX-License-Identifier: MIT
#include "sim/planning/write_plan.h"

#include <ostream>

#include "sim/planning/plan_fields.h"
#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"

namespace convoy::inline planning {

void write_json(const PlanAnswer& answer, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  plan_fields(archive, answer);
  json.end_object();
  json.raw("\n");
}

std::string plan_schema_text() { return schema_text<PlanAnswer>(plan_fields); }

}  // namespace convoy::planning
