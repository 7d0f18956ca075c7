// SPDX-License-Identifier: MIT
#include "sim/cli/show_schema.h"

#include <fmt/format.h>

#include <array>
#include <ostream>

#include "sim/base/input_error.h"
#include "sim/base/names.h"
#include "sim/cli/reproduction_json.h"
#include "sim/cli/schema_maker.h"
#include "sim/planning/write_plan.h"
#include "sim/results/comparison.h"
#include "sim/results/write_json.h"
#include "sim/studies/diagnose.h"
#include "sim/studies/doctor.h"
#include "sim/studies/regions/write_study.h"
#include "sim/studies/validation.h"

namespace convoy::inline cli {
namespace {

struct Document {
  const char* name;
  const char* what;
  const char* section = nullptr;       ///< of a file that the program reads
  std::string (*written)() = nullptr;  ///< the schema of a document that the program writes
};
constexpr std::array documents{
    Document{"experiment", "the file that `convoy run` and `convoy check` take", "experiment"},
    Document{"plan", "the file that `convoy plan` takes", "plan-file"},
    Document{"model", "a network written out, for `model: {file: FILE}`", "model-file"},
    Document{"cluster", "a cluster, for `convoy show clusters FILE` and an experiment's key `cluster`",
             "cluster"},
    Document{"device", "an entry of a cluster's `devices`, or a file of a catalogue of one's own", "device"},
    Document{"server", "an entry of a cluster's `servers`, or a file of a catalogue of one's own", "server"},
    Document{"schedule", "an all-reduce as rounds, for `algorithm: {file: FILE}`", "schedule"},
    Document{"results", "results.json, as `convoy run --json` prints it", nullptr, &results_schema_text},
    Document{"plan-answer", "plan.json, as `convoy plan --json` prints it", nullptr, &plan_schema_text},
    Document{"comparison", "what `convoy compare --json` prints", nullptr, &comparison_schema_text},
    Document{"validation", "what `convoy validate --json` prints", nullptr, &validation_schema_text},
    Document{"doctor", "what `convoy doctor --json` prints", nullptr, &doctor_schema_text},
    Document{"diagnosis", "what `convoy diagnose --json` prints", nullptr, &diagnosis_schema_text},
    Document{"study", "study.json, as `convoy study --json` prints it", nullptr, &study_schema_text},
    Document{"reproduction", "what `convoy reproduce --json` prints", nullptr, &reproductions_schema_text}};

const Document& document_named(const std::string& name) {
  for (const Document& document : documents)
    if (document.name == name) return document;
  throw InputError({"show schema", 1, 1},
                   fmt::format("unknown schema '{}'{}; there are {}", name, suggestion(name, schema_names()),
                               list_of(schema_names())));
}

}  // namespace

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  for (const Document& document : documents) names.emplace_back(document.name);
  return names;
}

std::string schema_line(const std::string& name) { return document_named(name).what; }

void show_schema(std::ostream& out, const ShowArguments& arguments) {
  const Document& document = document_named(arguments.name);
  Json begin{{"$schema", "http://json-schema.org/draft-07/schema#"},
             {"title", fmt::format("convoy: {}", document.name)},
             {"description", document.what}};
  if (document.section) {
    out << schema_of_section(document.section, begin).dump(1) << '\n';
    return;
  }
  begin.update(Json::parse(document.written()));
  out << begin.dump(1) << '\n';
}

}  // namespace convoy::cli
