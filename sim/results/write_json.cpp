// SPDX-License-Identifier: MIT
#include "sim/results/write_json.h"

#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"

namespace convoy::inline results {
void write_json(const Results& results, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  json.field("schema", results_schema);
  json.field("experiment", results.experiment);
  const auto done = static_cast<std::int64_t>(results.runs.size());
  json.field("points", results.points.value_or(done + static_cast<std::int64_t>(results.failed.size())));
  json.field("done", done);
  archive.list("failed", results.failed, failed_fields);
  archive.blocks("runs", results.runs, run_fields);
  archive.list_where(!results.schedules.empty(), "schedules", results.schedules, schedule_fields);
  json.key("manifest");
  json.begin_object();
  manifest_fields(archive, results.manifest);
  json.end_object();
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy::results
