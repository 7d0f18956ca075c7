// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ostream>
#include <set>

#include "sim/cli/commands.h"
#include "sim/results/json_writer.h"
#include "sim/run/output_folder.h"
#include "sim/run/workers.h"
#include "sim/studies/reproduce.h"
#include "sim/studies/thesis.h"

namespace convoy {
namespace {

struct Entry {
  const char* name;
  Reproduction (*run)();
};

constexpr const char* layers = "layers";

constexpr std::array entries{Entry{"single-device", &reproduce_single_device},
                             Entry{"scaling", [] { return reproduce_scaling(all_cores()); }},
                             Entry{"transports", [] { return reproduce_transports(all_cores()); }},
                             Entry{"pipelines", &reproduce_pipelines},
                             Entry{"memory", [] { return reproduce_memory(all_cores()); }},
                             Entry{"energy", [] { return reproduce_energy(all_cores()); }},
                             Entry{"mlperf", [] { return reproduce_mlperf(all_cores()); }}};

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
  if (!claim.source.empty()) json.field("source", thesis.source_of(claim));
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

void write_json(const std::vector<Reproduction>& reproductions,
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
      json.field("disputed", row.disputed);
      if (!row.shortfall.empty()) json.field("shortfall", row.shortfall);
      if (!row.kind.empty()) json.field("kind", row.kind);
      if (row.interval) {
        json.field("low", (*row.interval)[0]);
        json.field("high", (*row.interval)[1]);
        json.field("sets_interval", row.sets_interval);
      }
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

/// "mean error: 5.3 %, at most 6.0 %"
std::string gate_text(const Gate& gate) {
  std::string text = fmt::format("{}: {:.1f} %", gate.name, 100 * gate.value);
  if (gate.low != 0)
    text += fmt::format(", {} {:.1f} %", std::isfinite(gate.high) ? "from" : "at least", 100 * gate.low);
  if (std::isfinite(gate.high))
    text += fmt::format("{} {:.1f} %", gate.low != 0 ? " to" : ", at most", 100 * gate.high);
  if (!gate.shortfall.empty())
    return fmt::format("{}{}: {}\n", text,
                       gate.inside() ? ", as it should be, and yet listed" : ", known shortfall",
                       gate.shortfall);
  return text + (gate.inside() ? "\n" : ": FAILED\n");
}

void write_table(const Reproduction& reproduction, std::ostream& out) {
  std::size_t table_width = 5, model_width = 5, setup_width = 5;
  for (const ReproducedRow& row : reproduction.rows) {
    table_width = std::max(table_width, row.table.size());
    model_width = std::max(model_width, row.model.size());
    setup_width = std::max(setup_width, row.setup.size());
  }
  const int digits = reproduction.unit == "j" ? 3 : 1;
  out << fmt::format("{} ({})\n", reproduction.title, reproduction.name);
  out << fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>9}  {:>9}  {:>8}\n", "table", table_width, "model",
                     model_width, "setup", setup_width, "published", "predicted", "error");
  for (const ReproducedRow& row : reproduction.rows)
    out << fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>9.{}f}  {:>9.{}f}  {:>8}\n", row.table, table_width,
                       row.model, model_width, row.setup, setup_width, row.published, digits, row.predicted,
                       digits,
                       row.anchor ? "anchor"
                                  : fmt::format("{:+.1f} %{}", 100 * row.error,
                                                row.fitted             ? " f"
                                                : row.disputed.empty() ? ""
                                                                       : " *"));
  std::set<std::string> reasons;
  for (const ReproducedRow& row : reproduction.rows)
    if (!row.disputed.empty()) reasons.insert(row.disputed);
  if (!reasons.empty())
    out << "* other measurements contradict it; counts in the mean, not in the worst error:\n";
  for (const std::string& reason : reasons) out << "  " << reason << '\n';
  if (std::any_of(reproduction.rows.begin(), reproduction.rows.end(),
                  [](const ReproducedRow& row) { return row.fitted; }))
    out << fmt::format(
        "f a constant is fitted to it; counts in neither error. Mean error of these: {:.1f} %\n",
        100 * reproduction.fitted_error());
  for (const ErrorSummary& summary : reproduction.summaries)
    out << fmt::format(
        "{:<5} {:<10} {:<32} {:>4} rows  median {:>5.1f} %  mean {:>5.1f} %  90 % within {:>5.1f} %  bias "
        "{:>+6.1f} %\n",
        summary.role, summary.group, summary.name, summary.rows, 100 * summary.median, 100 * summary.mean,
        100 * summary.ninety, 100 * summary.bias);
  for (const ReproducedRow& row : reproduction.rows)
    if (!row.shortfall.empty())
      out << fmt::format("known shortfall: {}, {}, {} ({:+.1f} %): {}\n", row.table, row.model, row.setup,
                         100 * row.error, row.shortfall);
  for (const Gate& gate : reproduction.gates) out << gate_text(gate);
  for (const std::string& name : reproduction.outdated_shortfalls)
    out << fmt::format("{} does not fall short any more, or is not there: take it off the list\n", name);
  out << fmt::format("{}: mean error {:.1f} % (at most {:.1f} %), worst {:.1f} %: {}\n\n", reproduction.name,
                     100 * reproduction.mean_error(), 100 * reproduction.mean_tolerance,
                     100 * reproduction.worst_error(), reproduction.passed() ? "passed" : "FAILED");
}

void write_table(const KernelReproduction& kernels, std::ostream& out) {
  std::size_t width = 6;
  for (const KernelAccuracy& row : kernels.rows) width = std::max(width, row.device.size());
  const auto percent = [](double error) { return fmt::format("{:.1f} %", 100 * error); };
  out << "Times of single kernels: median error of the rows fitted, of others, and of the catalogue on these "
         "(layers)\n";
  out << fmt::format("{:<{}}  {:<9}  {:<11}  {:<9}  {:>6}  {:>8}  {:>6}  {:>8}  {:>9}\n", "device", width,
                     "precision", "kind", "by", "fitted", "error", "tested", "error", "catalogue");
  for (const KernelAccuracy& row : kernels.rows)
    out << fmt::format("{:<{}}  {:<9}  {:<11}  {:<9}  {:>6}  {:>8}  {:>6}  {:>8}  {:>9}\n", row.device, width,
                       row.precision, row.kind, row.measured_by, row.fitted, percent(row.fit_error),
                       row.tested, percent(row.test_error), percent(row.catalogue_error));
  out << fmt::format("layers: worst median error of a device's test rows {:.1f} % (at most {:.0f} %): {}\n\n",
                     100 * kernels.worst(), 100 * kernels.tolerance, kernels.passed() ? "passed" : "FAILED");
}

/// "0.82 to 0.98: passed", "no verdict".
std::string verdict_of(const JudgedClaim& claim) {
  if (claim.verdict() == Verdict::none) return "no verdict";
  const std::string range = claim.low && claim.high ? fmt::format("{:.4g} to {:.4g}", *claim.low, *claim.high)
                            : claim.high            ? fmt::format("at most {:.4g}", *claim.high)
                                                    : fmt::format("at least {:.4g}", *claim.low);
  if (claim.verdict() == Verdict::passed) return range + ": passed";
  return range + (claim.shortfall.empty() ? ": FAILED" : ": FAILED *");
}

std::string error_of(const JudgedClaim& claim) {
  if (!claim.published) return "-";
  if (claim.unit == "%") return fmt::format("{:+.1f} points", claim.ours - *claim.published);
  return fmt::format("{:+.1f} %", 100 * (claim.ours / *claim.published - 1));
}

void write_table(const ThesisReproduction& thesis, std::ostream& out) {
  std::size_t what_width = 5, setup_width = 5;
  std::set<std::string> used, shortfalls;
  std::array<int, 3> count{};
  for (const JudgedClaim& claim : thesis.claims) {
    what_width = std::max(what_width, claim.claim.size());
    setup_width = std::max(setup_width, claim.setup.size());
    used.insert(claim.source);
    ++count[static_cast<std::size_t>(claim.verdict())];
    if (claim.verdict() == Verdict::failed && !claim.shortfall.empty())
      shortfalls.insert(fmt::format("* {}: {}", claim.claim, claim.shortfall));
  }
  out << fmt::format("{} ({})\n{}\n", thesis.title, thesis.name, thesis.note);
  out << fmt::format("{:<{}}  {:<{}}  {:>9}  {:>9}  {:>11}  {:<10}  {:<8}  {}\n", "claim", what_width,
                     "setup", setup_width, "published", "ours", "error", "role", "stated", "accepted");
  for (const JudgedClaim& claim : thesis.claims) {
    const auto figure = [&](double value) { return fmt::format("{:.3g} {}", value, claim.unit); };
    const std::string stated = claim.source.empty() || claim.source == to_string(claim.stated_in)
                                   ? std::string(to_string(claim.stated_in))
                                   : claim.source;
    out << fmt::format("{:<{}}  {:<{}}  {:>9}  {:>9}  {:>11}  {:<10}  {:<8}  {}\n", claim.claim, what_width,
                       claim.setup, setup_width, claim.published ? figure(*claim.published) : "-",
                       figure(claim.ours), error_of(claim), to_string(claim.role), stated, verdict_of(claim));
  }
  for (const std::string& shortfall : shortfalls) out << shortfall << '\n';
  for (const auto& [key, text] : thesis.sources)
    if (used.contains(key)) out << fmt::format("{}: {}\n", key, text);
  out << fmt::format("{}: {} passed, {} failed, {} without verdict: {}\n\n", thesis.name, count[0], count[1],
                     count[2], thesis.passed() ? "as listed" : "FAILED");
}

}  // namespace

std::vector<std::string> reproduction_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  names.emplace_back(layers);
  for (const std::string& thesis : thesis_names()) names.push_back(thesis);
  return names;
}

Exit reproduce_command(const ReproduceArguments& arguments) {
  const auto wanted = [&](const char* name) {
    return arguments.names.empty() ||
           std::find(arguments.names.begin(), arguments.names.end(), name) != arguments.names.end();
  };
  std::vector<Reproduction> reproductions;
  for (const Entry& entry : entries)
    if (wanted(entry.name)) {
      reproductions.push_back(entry.run());
      judge(reproductions.back());
    }
  std::optional<KernelReproduction> kernels;
  if (wanted(layers)) kernels = reproduce_kernels();
  std::vector<ThesisReproduction> theses;
  for (const std::string& thesis : thesis_names())
    if (wanted(thesis.c_str())) theses.push_back(judge(run_thesis(thesis, all_cores())));
  write_stdout([&](std::ostream& out) {
    if (arguments.json) return write_json(reproductions, kernels, theses, out);
    for (const Reproduction& reproduction : reproductions) write_table(reproduction, out);
    if (kernels) write_table(*kernels, out);
    for (const ThesisReproduction& thesis : theses) write_table(thesis, out);
  });
  const auto passed = [](const auto& made) { return made.passed(); };
  return std::all_of(reproductions.begin(), reproductions.end(), passed) && (!kernels || kernels->passed()) &&
                 std::all_of(theses.begin(), theses.end(), passed)
             ? Exit::done
             : Exit::check_failed;
}

}  // namespace convoy
