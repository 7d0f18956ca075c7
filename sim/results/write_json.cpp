// SPDX-License-Identifier: MIT
#include "sim/results/write_json.h"

#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"

namespace convoy::inline results {

void write_json(const Results& results, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  results_fields(archive, results);
  json.end_object();
  json.raw("\n");
}

std::string results_schema_text() { return schema_text<Results>(results_fields); }

}  // namespace convoy::results
