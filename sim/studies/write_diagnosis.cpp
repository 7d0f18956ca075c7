// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/page.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"
#include "sim/results/result_fields.h"
#include "sim/results/write_explain.h"
#include "sim/studies/diagnose.h"

namespace convoy::inline studies {
namespace {

constexpr std::size_t most_told = 12;

constexpr auto diagnosed_fields = [](auto& archive, auto& term) {
  archive.field("name", term.name);
  archive.field("measured_s", term.measured_s);
  archive.field("predicted_s", term.predicted_s);
  archive.gain("gap_s", term.gap_s());
};

constexpr auto trace_diagnosis_fields = [](auto& archive, auto& diagnosis) {
  archive.constant("schema", "convoy.diagnose/1");
  archive.field("experiment", diagnosis.experiment);
  archive.field("steps", std::uint64_t{diagnosis.steps});
  archive.field("measured_step_time_s", diagnosis.measured_s);
  archive.field("recording_s", diagnosis.recording_s);
  archive.field("step_time_s", diagnosis.run.step_time_s);
  archive.field("matched_share", diagnosis.matched_share);
  archive.list("terms", diagnosis.terms, diagnosed_fields);
  archive.list("operations", diagnosis.operations, diagnosed_fields);
  archive.list("remedies", diagnosis.run.counterfactuals, counterfactual_fields);
  archive.list("refused_changes", diagnosis.run.refused_changes, refused_change_fields);
};

/// "82.1 ms measured, 90.3 ms predicted: +10.0 %"
std::string both_text(double measured_s, double predicted_s) {
  return fmt::format("{} measured, {} predicted{}", format_time(measured_s), format_time(predicted_s),
                     measured_s > 0 ? fmt::format(": {:+.1f} %", 100 * (predicted_s / measured_s - 1)) : "");
}

std::string headline_of(const TraceDiagnosis& diagnosis) {
  const std::string of_recording =
      diagnosis.recording_s > 0
          ? fmt::format(" (of {} in the trace, {} are its recording)", format_time(diagnosis.measured_s),
                        format_time(diagnosis.recording_s))
          : "";
  return fmt::format("a step takes {}{}; {} of the computing in the trace ({} {}) is matched",
                     both_text(diagnosis.measured_s - diagnosis.recording_s, diagnosis.run.step_time_s),
                     of_recording, percent_text(diagnosis.matched_share), diagnosis.steps,
                     diagnosis.steps == 1 ? "step" : "steps");
}

std::string signed_time(double seconds) {
  return fmt::format("{}{}", seconds < 0 ? "-" : "+", format_time(std::abs(seconds)));
}

std::string told_rows(const std::vector<DiagnosedTerm>& told, std::size_t most) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < std::min(most, told.size()); ++i)
    width = std::max(width, width_of(told[i].name));
  std::string text;
  for (std::size_t i = 0; i < std::min(most, told.size()); ++i)
    text += fmt::format("  {:>9}  {:<{}}  {}\n", signed_time(told[i].gap_s()), told[i].name, width,
                        both_text(told[i].measured_s, told[i].predicted_s));
  if (told.size() > most) text += fmt::format("  and {} more in --json\n", told.size() - most);
  return text;
}

std::string told_table(const std::vector<DiagnosedTerm>& told) {
  std::vector<HtmlRow> rows;
  for (const DiagnosedTerm& term : told)
    rows.push_back(
        {{term.name, format_time(term.measured_s), format_time(term.predicted_s), signed_time(term.gap_s()),
          term.measured_s > 0 ? number_text(term.predicted_s / term.measured_s) : "-"}});
  return html_table({{"of a step"},
                     {"measured", true},
                     {"predicted", true},
                     {"predicted - measured", true},
                     {"predicted / measured", true}},
                    rows);
}

}  // namespace

void write_diagnosis(const TraceDiagnosis& diagnosis, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  trace_diagnosis_fields(archive, diagnosis);
  json.end_object();
  json.raw("\n");
}

std::string diagnosis_schema_text() { return schema_text<TraceDiagnosis>(trace_diagnosis_fields); }

void write_joint_trace(const TraceDiagnosis& diagnosis, std::ostream& out) {
  TraceWriter writer(out);
  for (const TraceProcess& process : diagnosis.steps_drawn) writer.add(process);
}

std::string diagnosis_text(const TraceDiagnosis& diagnosis) {
  Results remedies;
  remedies.runs.push_back(diagnosis.run);
  return fmt::format("{}: {}\n\nby what the two differ\n{}\noperations that differ most\n{}",
                     diagnosis.experiment, headline_of(diagnosis),
                     told_rows(diagnosis.terms, diagnosis.terms.size()),
                     told_rows(diagnosis.operations, most_told)) +
         "\nwhat would help, as predicted" + explanation(remedies);
}

void write_page(const TraceDiagnosis& diagnosis, std::ostream& out) {
  std::string body = fmt::format("<h1>{}: measured and predicted</h1>\n{}", escaped(diagnosis.experiment),
                                 html_paragraph(headline_of(diagnosis)));
  body += "<h2>By what the two differ</h2>\n" + told_table(diagnosis.terms);
  body += "<h2>Operations</h2>\n" + told_table(diagnosis.operations);
  std::vector<HtmlRow> rows;
  for (const Counterfactual& row : diagnosis.run.counterfactuals)
    rows.push_back({{row.change, format_time(row.step_time_s), gain_text(row, diagnosis.run),
                     gain_usd_text(row, diagnosis.run), gain_memory_text(row, diagnosis.run)}});
  body += "<h2>What would help, as predicted</h2>\n" +
          html_table({{"change"}, {"step", true}, {"gain"}, {"an epoch"}, {"memory"}}, rows);
  out << html_page(diagnosis.experiment, body);
}

}  // namespace convoy::studies
