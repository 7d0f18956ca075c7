// SPDX-License-Identifier: MIT
#include "sim/cli/reproduction_json.h"

#include <cmath>

#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"

namespace convoy::inline cli {
namespace {

/// Only a row that nothing was set by is held to the tolerance of single rows, where there is one.
Verdict verdict_of(const ReproducedRow& row, const std::optional<double>& tolerance) {
  if (!row.tested() || !tolerance) return Verdict::none;
  return std::abs(row.error) <= *tolerance ? Verdict::passed : Verdict::failed;
}

// The fields of convoy.reproduction/1, in their order (result_fields.h says what archives understand).

constexpr auto kernel_row_fields = [](auto& archive, const KernelAccuracy& row) {
  archive.field("measured_by", row.measured_by);
  archive.field("device", row.device);
  archive.field("precision", row.precision);
  archive.field("kind", row.kind);
  archive.field("fitted", std::uint64_t{row.fitted});
  archive.field("fit_median_error", row.fit_error);
  archive.field("tested", std::uint64_t{row.tested});
  archive.field("test_median_error", row.test_error);
  archive.field("catalogue_median_error", row.catalogue_error);
};

constexpr auto kernels_fields = [](auto& archive, const KernelReproduction& kernels) {
  archive.field("tolerance", kernels.tolerance);
  archive.field("passed", kernels.passed());
  archive.list("rows", kernels.rows, kernel_row_fields);
};

constexpr auto summary_row_fields = [](auto& archive, const ErrorSummary& summary) {
  archive.field("role", summary.role);
  archive.field("group", summary.group);
  archive.field("name", summary.name);
  archive.field("rows", std::uint64_t{summary.rows});
  archive.field("median_error", summary.median);
  archive.field("mean_error", summary.mean);
  archive.field("ninety_percent_error", summary.ninety);
  archive.field("bias", summary.bias);
};

constexpr auto batch_fields = [](auto& archive, const BatchRow& row) {
  archive.field("device", row.device);
  archive.field("model", row.model);
  archive.field("setup", row.setup);
  archive.field("software", row.software);
  archive.field("ran", row.ran);
  archive.field("process_mib", row.process_mib);
  archive.field("usable_mib", row.usable_mib);
  archive.field("fits", row.fits());
  archive.field("sure", row.sure());
  archive.field("source", row.source);
};

constexpr auto gate_fields = [](auto& archive, const Gate& gate) {
  archive.field("name", gate.name);
  archive.field("value", gate.value);
  archive.optional("high", std::isfinite(gate.high) ? std::optional(gate.high) : std::nullopt);
  archive.field("low", gate.low);
  archive.optional_text("shortfall", gate.shortfall);
  archive.field("passed", gate.inside());
};

constexpr auto reproduction_fields = [](auto& archive, const Reproduction& reproduction) {
  archive.field("name", reproduction.name);
  archive.field("title", reproduction.title);
  archive.field("mean_error", reproduction.mean_error());
  archive.field("worst_error", reproduction.worst_error());
  archive.field("fitted_error", reproduction.fitted_error());
  archive.field("mean_tolerance", reproduction.mean_tolerance);
  archive.field("median_error", reproduction.median_error());
  archive.nullable("worst_tolerance", reproduction.worst_tolerance);
  archive.optional("median_tolerance", reproduction.median_tolerance);
  archive.optional("interval_coverage", reproduction.coverage());
  archive.list("gates", reproduction.gates, gate_fields);
  archive.list_where(!reproduction.summaries.empty(), "summaries", reproduction.summaries,
                     summary_row_fields);
  archive.list_where(!reproduction.batches.empty(), "batches", reproduction.batches, batch_fields);
  archive.field("passed", reproduction.passed());
  archive.field("as_listed", reproduction.as_listed());
  archive.list("rows", reproduction.rows, [&](auto& of_row, const ReproducedRow& row) {
    of_row.field("table", row.table);
    of_row.field("model", row.model);
    of_row.field("setup", row.setup);
    of_row.in_unit("published", reproduction.unit, row.published);
    of_row.in_unit("predicted", reproduction.unit, row.predicted);
    of_row.field("error", row.error);
    of_row.field("anchor", row.anchor);
    of_row.field("fitted", row.fitted);
    of_row.optional_text("shortfall", row.shortfall);
    of_row.optional_text("reason", row.reason);
    of_row.optional_text("kind", row.kind);
    of_row.part("low", row.interval.has_value(), [&] {
      const std::array<double, 2> interval = row.interval.value_or(std::array<double, 2>{});
      of_row.field("low", interval[0]);
      of_row.field("high", interval[1]);
      of_row.field("sets_interval", row.sets_interval);
    });
    of_row.field("role", row.anchor ? "calibrated" : row.fitted ? "fit" : row.outside ? "outside" : "test");
    of_row.field("stated_in", "table");
    of_row.field("verdict", to_string(verdict_of(row, reproduction.worst_tolerance)));
    of_row.field("source", row.source);
  });
};

constexpr auto sentence_fields = [](auto& archive, const JudgedSentence& judged) {
  archive.field("says", judged.sentence.says);
  archive.texts("judged_by", judged.sentence.judged_by);
  archive.field("passed", std::int64_t{judged.passed});
  archive.field("failed", std::int64_t{judged.failed});
  archive.field("without_verdict", std::int64_t{judged.without_verdict});
  archive.optional_text("not_said", judged.sentence.not_said);
  archive.optional_text("not_judged", judged.sentence.not_judged);
};

constexpr auto thesis_fields = [](auto& archive, const ThesisReproduction& thesis) {
  archive.field("name", thesis.name);
  archive.field("title", thesis.title);
  archive.field("note", thesis.note);
  archive.field("passed", thesis.passed());
  archive.list("claims", thesis.claims, [&](auto& of_claim, const JudgedClaim& claim) {
    of_claim.field("claim", claim.claim);
    of_claim.field("setup", claim.setup);
    of_claim.field("role", to_string(claim.role));
    of_claim.field("stated_in", to_string(claim.stated_in));
    of_claim.field("verdict", to_string(claim.verdict()));
    of_claim.field("unit", claim.unit);
    of_claim.nullable("published", claim.published);
    of_claim.field("ours", claim.ours);
    of_claim.nullable("low", claim.low);
    of_claim.nullable("high", claim.high);
    archive.optional_text("accepted_because", claim.because);
    archive.optional_text("searched", claim.searched);
    archive.optional_text("shortfall", claim.shortfall);
    archive.optional_text("cause",
                          claim.shortfall.empty() ? std::string{} : std::string(to_string(claim.cause)));
    archive.optional_text("fails_under", claim.fails_under);
    archive.optional_text("source", claim.source.empty() ? std::string{} : thesis.source_of(claim));
  });
  archive.list("abstract", thesis.abstract, sentence_fields);
};

constexpr auto document_fields = [](auto& archive, const Reproductions& document) {
  archive.constant("schema", "convoy.reproduction/1");
  archive.blocks("reproductions", document.reproductions, reproduction_fields);
  archive.optional_block("layers", document.kernels, kernels_fields);
  archive.blocks("theses", document.theses, thesis_fields);
};

}  // namespace

std::string reproductions_schema_text() { return schema_text<Reproductions>(document_fields); }

void write_reproductions(const Reproductions& document, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  document_fields(archive, document);
  json.end_object();
  json.raw("\n");
}

}  // namespace convoy::cli
