// SPDX-License-Identifier: MIT
#include "sim/cli/reproduction_json.h"

#include <cmath>

#include "sim/results/json_writer.h"

namespace convoy::inline cli {
namespace {

/// Only a row that nothing was set by is held to the tolerance of single rows, where there is one.
Verdict verdict_of(const ReproducedRow& row, const std::optional<double>& tolerance) {
  if (row.anchor || row.fitted || !tolerance) return Verdict::none;
  return std::abs(row.error) <= *tolerance ? Verdict::passed : Verdict::failed;
}

void write_claim(const ThesisReproduction& thesis, const JudgedClaim& claim, JsonWriter& json) {
  const auto optional = [&](const char* key, const std::optional<double>& value) {
    json.key(key);
    value ? json.value(*value) : json.null();
  };
  json.begin_object(JsonWriter::Style::compact);
  json.field("claim", claim.claim);
  json.field("setup", claim.setup);
  json.field("role", to_string(claim.role));
  json.field("stated_in", to_string(claim.stated_in));
  json.field("verdict", to_string(claim.verdict()));
  json.field("unit", claim.unit);
  optional("published", claim.published);
  json.field("ours", claim.ours);
  optional("low", claim.low);
  optional("high", claim.high);
  if (!claim.shortfall.empty()) json.field("shortfall", claim.shortfall);
  if (!claim.fails_under.empty()) json.field("fails_under", claim.fails_under);
  if (!claim.source.empty()) json.field("source", thesis.source_of(claim));
  json.end_object();
}

void write_sentence(const JudgedSentence& judged, JsonWriter& json) {
  json.begin_object(JsonWriter::Style::compact);
  json.field("says", judged.sentence.says);
  json.key("judged_by");
  json.begin_array(JsonWriter::Style::compact);
  for (const std::string& title : judged.sentence.judged_by) json.value(title);
  json.end_array();
  json.field("passed", std::int64_t{judged.passed});
  json.field("failed", std::int64_t{judged.failed});
  json.field("without_verdict", std::int64_t{judged.without_verdict});
  if (!judged.sentence.not_judged.empty()) json.field("not_judged", judged.sentence.not_judged);
  json.end_object();
}

void write_thesis(const ThesisReproduction& thesis, JsonWriter& json) {
  json.begin_object();
  json.field("name", thesis.name);
  json.field("title", thesis.title);
  json.field("note", thesis.note);
  json.field("passed", thesis.passed());
  json.key("claims");
  json.begin_array();
  for (const JudgedClaim& claim : thesis.claims) write_claim(thesis, claim, json);
  json.end_array();
  json.key("abstract");
  json.begin_array();
  for (const JudgedSentence& judged : thesis.abstract) write_sentence(judged, json);
  json.end_array();
  json.end_object();
}

void write_kernels(const KernelReproduction& kernels, JsonWriter& json) {
  json.begin_object();
  json.field("tolerance", kernels.tolerance);
  json.field("passed", kernels.passed());
  json.key("rows");
  json.begin_array();
  for (const KernelAccuracy& row : kernels.rows) {
    json.begin_object(JsonWriter::Style::compact);
    json.field("measured_by", row.measured_by);
    json.field("device", row.device);
    json.field("precision", row.precision);
    json.field("kind", row.kind);
    json.field("fitted", static_cast<std::int64_t>(row.fitted));
    json.field("fit_median_error", row.fit_error);
    json.field("tested", static_cast<std::int64_t>(row.tested));
    json.field("test_median_error", row.test_error);
    json.field("catalogue_median_error", row.catalogue_error);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_summaries(const std::vector<ErrorSummary>& summaries, JsonWriter& json) {
  if (summaries.empty()) return;
  json.key("summaries");
  json.begin_array();
  for (const ErrorSummary& summary : summaries) {
    json.begin_object(JsonWriter::Style::compact);
    json.field("role", summary.role);
    json.field("group", summary.group);
    json.field("name", summary.name);
    json.field("rows", static_cast<std::int64_t>(summary.rows));
    json.field("median_error", summary.median);
    json.field("mean_error", summary.mean);
    json.field("ninety_percent_error", summary.ninety);
    json.field("bias", summary.bias);
    json.end_object();
  }
  json.end_array();
}

void write_batches(const std::vector<BatchRow>& batches, JsonWriter& json) {
  if (batches.empty()) return;
  json.key("batches");
  json.begin_array();
  for (const BatchRow& row : batches) {
    json.begin_object(JsonWriter::Style::compact);
    json.field("device", row.device);
    json.field("model", row.model);
    json.field("setup", row.setup);
    json.field("software", row.software);
    json.field("ran", row.ran);
    json.field("process_mib", row.process_mib);
    json.field("usable_mib", row.usable_mib);
    json.field("fits", row.fits());
    json.field("sure", row.sure());
    json.field("source", row.source);
    json.end_object();
  }
  json.end_array();
}

void write_gates(const Reproduction& reproduction, JsonWriter& json) {
  json.key("gates");
  json.begin_array();
  for (const Gate& gate : reproduction.gates) {
    json.begin_object(JsonWriter::Style::compact);
    json.field("name", gate.name);
    json.field("value", gate.value);
    if (std::isfinite(gate.high)) json.field("high", gate.high);
    json.field("low", gate.low);
    if (!gate.shortfall.empty()) json.field("shortfall", gate.shortfall);
    json.field("passed", gate.passed());
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_reproductions(const std::vector<Reproduction>& reproductions,
                         const std::optional<KernelReproduction>& kernels,
                         const std::vector<ThesisReproduction>& theses, std::ostream& out) {
  JsonWriter json(out);
  json.begin_object();
  json.field("schema", "convoy.reproduction/1");
  json.key("reproductions");
  json.begin_array();
  for (const Reproduction& reproduction : reproductions) {
    json.begin_object();
    json.field("name", reproduction.name);
    json.field("title", reproduction.title);
    json.field("mean_error", reproduction.mean_error());
    json.field("worst_error", reproduction.worst_error());
    json.field("fitted_error", reproduction.fitted_error());
    json.field("mean_tolerance", reproduction.mean_tolerance);
    json.field("median_error", reproduction.median_error());
    json.key("worst_tolerance");
    reproduction.worst_tolerance ? json.value(*reproduction.worst_tolerance) : json.null();
    if (reproduction.median_tolerance) json.field("median_tolerance", *reproduction.median_tolerance);
    if (reproduction.coverage()) json.field("interval_coverage", *reproduction.coverage());
    write_gates(reproduction, json);
    write_summaries(reproduction.summaries, json);
    write_batches(reproduction.batches, json);
    json.field("passed", reproduction.passed());
    json.key("rows");
    json.begin_array();
    for (const ReproducedRow& row : reproduction.rows) {
      json.begin_object(JsonWriter::Style::compact);
      json.field("table", row.table);
      json.field("model", row.model);
      json.field("setup", row.setup);
      json.field("published_" + reproduction.unit, row.published);
      json.field("predicted_" + reproduction.unit, row.predicted);
      json.field("error", row.error);
      json.field("anchor", row.anchor);
      json.field("fitted", row.fitted);
      if (!row.shortfall.empty()) json.field("shortfall", row.shortfall);
      if (!row.kind.empty()) json.field("kind", row.kind);
      if (row.interval) {
        json.field("low", (*row.interval)[0]);
        json.field("high", (*row.interval)[1]);
        json.field("sets_interval", row.sets_interval);
      }
      json.field("role", row.anchor ? "calibrated" : row.fitted ? "fit" : "test");
      json.field("stated_in", "table");
      json.field("verdict", to_string(verdict_of(row, reproduction.worst_tolerance)));
      json.field("source", row.source);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  if (kernels) {
    json.key("layers");
    write_kernels(*kernels, json);
  }
  json.key("theses");
  json.begin_array();
  for (const ThesisReproduction& thesis : theses) write_thesis(thesis, json);
  json.end_array();
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy::cli
