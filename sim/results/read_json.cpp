// SPDX-License-Identifier: MIT
#include "sim/results/read_json.h"

#include <fmt/format.h>

#include <istream>

#include "sim/base/input_error.h"
#include "sim/results/field_reader.h"
#include "sim/results/result_fields.h"

namespace convoy::inline results {
namespace {

/// Runs of one sweep have the same coordinates.
void check_point(const RunResult& run, const RunResult& first, const JsonPlace& place) {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!std::equal(run.point.begin(), run.point.end(), first.point.begin(), first.point.end(), same))
    throw JsonError(place, "its point has other names than the first run's");
}

void check_schema(const std::string& schema) {
  if (schema.starts_with("convoy.plan/"))
    throw JsonError(fmt::format("this is the answer of a plan ('{}'), not results of a run", schema));
  if (schema != results_schema)
    throw JsonError(fmt::format("its schema is '{}'; this program reads '{}'", schema, results_schema));
}

Results read_document(std::istream& in) {
  Results results;
  bool schema = false;
  const JsonPlace root, runs{&root, "runs"};
  const auto need_schema = [&] {
    if (!schema)
      throw JsonError(
          fmt::format("no results of convoy: does not begin with \"schema\": \"{}\"", results_schema));
  };
  Json rest = parse_json(
      in, "runs",
      [&](const std::string& name, const Json& value) {
        if (name == "schema" && value.is_string()) {
          check_schema(value.get<std::string>());
          schema = true;
        }
        need_schema();
      },
      [&](std::size_t index, const Json& item) {
        need_schema();
        const JsonPlace place{&runs, {}, index};
        FieldReader::whole(item, place, results.runs.emplace_back(), run_fields);
        if (results.runs.back().devices == 0) throw JsonError(place, "a run without devices");
        check_point(results.runs.back(), results.runs.front(), place);
      });
  need_schema();
  FieldReader document(rest, root);
  std::string name;
  document.field("schema", name);
  document.field("experiment", results.experiment);
  document.field("points", results.points.emplace());
  std::int64_t done = 0;
  document.field("done", done);
  document.list("failed", results.failed, failed_fields);
  std::vector<RunResult> left;  // the runs have been passed on, but the member may be no list
  document.list("runs", left, run_fields);
  document.list_where(false, "schedules", results.schedules, schedule_fields);
  document.object("manifest", results.manifest, manifest_fields);
  document.finish();
  if (done != static_cast<std::int64_t>(results.runs.size()))
    throw JsonError(fmt::format("'done' is {}, and there are {} runs", done, results.runs.size()));
  for (RunResult& run : results.runs) run.network_model = results.manifest.network_model;
  return results;
}

}  // namespace

Results read_json(std::istream& in, const std::string& file) {
  try {
    return read_document(in);
  } catch (const JsonError& error) {
    throw InputError({file, 0, 0}, error.what());
  }
}

}  // namespace convoy::results
