// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <ostream>
#include <set>

#include "sim/base/input_error.h"
#include "sim/base/names.h"
#include "sim/cli/commands.h"
#include "sim/cli/progress.h"
#include "sim/cli/reproduction_json.h"
#include "sim/page/text.h"
#include "sim/results/json_writer.h"
#include "sim/run/output_folder.h"
#include "sim/run/workers.h"
#include "sim/studies/regions/write_study.h"
#include "sim/studies/reproduce.h"
#include "sim/studies/thesis.h"

namespace convoy::inline cli {
namespace {

struct Entry {
  const char* name;
  Reproduction (*run)();
};

constexpr const char* layers = "layers";

constexpr std::array entries{
    Entry{"single-device", &reproduce_single_device},
    Entry{"scaling", [] { return reproduce_scaling(all_cores()); }},
    Entry{"transports", [] { return reproduce_transports(all_cores()); }},
    Entry{"real-images", [] { return reproduce_real_images(all_cores()); }},
    Entry{"loaders", [] { return reproduce_loaders(all_cores()); }},
    Entry{"collectives-inside", [] { return reproduce_collectives_inside(all_cores()); }},
    Entry{"collectives-between", [] { return reproduce_collectives_between(all_cores()); }},
    Entry{"pipelines", &reproduce_pipelines},
    Entry{"memory", [] { return reproduce_memory(all_cores()); }},
    Entry{"energy", [] { return reproduce_energy(all_cores()); }},
    Entry{"mlperf", [] { return reproduce_mlperf(all_cores()); }},
    Entry{"detection", [] { return reproduce_detection(all_cores()); }},
    Entry{"dawnbench", [] { return reproduce_dawnbench(all_cores()); }},
    Entry{"whole-runs", [] { return reproduce_whole_runs(all_cores()); }}};

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

/// What is said of batches that ran, and of batches that ran out of memory; then each that is said falsely.
void write_batches(const std::vector<BatchRow>& batches, std::ostream& out) {
  out << fmt::format("{:<12}  {:<13}  {:>5}  {:>5}  {:>7}  {:>11}  {:>10}\n", "batches", "published", "rows",
                     "fit", "may fit", "may not fit", "do not fit");
  for (const std::string& software : batch_software(batches))
    for (const bool ran : {true, false}) {
      const BatchCount count = count_batches(batches, software, ran);
      if (count.rows == 0) continue;
      out << fmt::format("{:<12}  {:<13}  {:>5}  {:>5}  {:>7}  {:>11}  {:>10}\n", software,
                         ran ? "ran" : "out of memory", count.rows, count.fit, count.may_fit,
                         count.may_not_fit, count.do_not_fit);
    }
  for (const BatchRow& row : batches)
    if (row.fits() != row.ran)
      out << fmt::format("{}: {}, {}, {}, {}: {:.0f} of {:.0f} MiB, {} by prediction, {} by measurement\n",
                         row.sure() ? "said falsely" : "at the edge", row.device, row.model, row.setup,
                         row.software, row.process_mib, row.usable_mib, row.fits() ? "fits" : "does not fit",
                         row.ran ? "ran" : "out of memory");
}

/// What is out of reach: each reason that is no shortfall, with its rows.
void write_reasons(const Reproduction& reproduction, std::ostream& out) {
  std::map<std::string, std::vector<const ReproducedRow*>> by_reason;
  for (const ReproducedRow& row : reproduction.rows)
    if (!row.reason.empty() && row.shortfall.empty()) by_reason[row.reason].push_back(&row);
  for (const auto& [reason, rows] : by_reason) {
    out << fmt::format("out of reach, {} row{}: {}\n", rows.size(), rows.size() > 1 ? "s" : "", reason);
    for (const ReproducedRow* row : rows)
      out << fmt::format("  {:+.1f} %  {}, {}, {}\n", 100 * row->error, row->table, row->model, row->setup);
  }
}

void write_table(const Reproduction& reproduction, std::ostream& out) {
  std::size_t table_width = 5, model_width = 5, setup_width = 5;
  for (const ReproducedRow& row : reproduction.rows) {
    table_width = std::max(table_width, row.table.size());
    model_width = std::max(model_width, row.model.size());
    setup_width = std::max(setup_width, row.setup.size());
  }
  const int digits = reproduction.unit == "j" || reproduction.unit == "factor" ? 3 : 1;
  out << fmt::format("{} ({})\n", reproduction.title, reproduction.name);
  out << fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>9}  {:>9}  {:>8}\n", "table", table_width, "model",
                     model_width, "setup", setup_width, "published", "predicted", "error");
  for (const ReproducedRow& row : reproduction.rows)
    out << fmt::format(
        "{:<{}}  {:<{}}  {:<{}}  {:>9.{}f}  {:>9.{}f}  {:>8}\n", row.table, table_width, row.model,
        model_width, row.setup, setup_width, row.published, digits, row.predicted, digits,
        row.anchor ? "anchor" : fmt::format("{:+.1f} %{}", 100 * row.error, row.fitted ? " f" : ""));
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
  write_reasons(reproduction, out);
  if (!reproduction.batches.empty()) write_batches(reproduction.batches, out);
  for (const Gate& gate : reproduction.gates) out << gate_text(gate);
  for (const std::string& name : reproduction.outdated_shortfalls)
    out << fmt::format("{} does not fall short any more, or is not there: take it off the list\n", name);
  out << fmt::format("{}: mean error {:.1f} % (at most {:.1f} %), worst {:.1f} %: {}\n\n", reproduction.name,
                     100 * reproduction.mean_error(), 100 * reproduction.mean_tolerance,
                     100 * reproduction.worst_error(),
                     reproduction.passed()      ? "passed"
                     : reproduction.as_listed() ? "FAILED, as listed"
                                                : "FAILED");
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

/// "0.82 to 0.98", "at most 1"; "-" where there is no verdict.
std::string accepted_of(const JudgedClaim& claim) {
  if (claim.verdict() == Verdict::none) return "-";
  return claim.low && claim.high
             ? fmt::format("{} to {}", digits_text(*claim.low, 4), digits_text(*claim.high, 4))
         : claim.high ? fmt::format("at most {}", digits_text(*claim.high, 4))
                      : fmt::format("at least {}", digits_text(*claim.low, 4));
}

/// "passed, fails with many.step_time_s x 2", "FAILED *", "shown".
std::string verdict_of(const JudgedClaim& claim) {
  if (claim.verdict() == Verdict::none) return "shown";
  if (claim.verdict() == Verdict::passed)
    return claim.fails_under.empty() ? "passed" : "passed, fails with " + claim.fails_under;
  return claim.shortfall.empty() ? "FAILED" : "FAILED *";
}

/// "4 to 8 devices, alexnet (greatest of 6, 1.9 to 6.08)"
std::string setup_of(const JudgedClaim& claim) {
  return claim.searched.empty() ? claim.setup : fmt::format("{} ({})", claim.setup, claim.searched);
}

std::string error_of(const JudgedClaim& claim) {
  if (!claim.published) return "-";
  if (claim.unit == "%") return fmt::format("{:+.1f} points", claim.ours - *claim.published);
  return fmt::format("{:+.1f} %", 100 * (claim.ours / *claim.published - 1));
}

const char* cause_text(FailureCause cause) {
  switch (cause) {
    case FailureCause::thesis:
      return "it is not clear what is stated";
    case FailureCause::mechanism:
      return "a mechanism is missing here";
    case FailureCause::input:
      break;
  }
  return "an input is not known";
}

void write_table(const ThesisReproduction& thesis, std::ostream& out) {
  std::size_t what_width = 5, setup_width = 5;
  std::set<std::string> used, shortfalls, reasons;
  std::array<int, 3> count{};
  for (const JudgedClaim& claim : thesis.claims) {
    what_width = std::max(what_width, claim.claim.size());
    setup_width = std::max(setup_width, setup_of(claim).size());
    used.insert(claim.source);
    ++count[static_cast<std::size_t>(claim.verdict())];
    if (claim.verdict() == Verdict::failed && !claim.shortfall.empty())
      shortfalls.insert(fmt::format("* {} ({}): {}", claim.title, cause_text(claim.cause), claim.shortfall));
    if (!claim.because.empty())
      reasons.insert(fmt::format("{}, accepted is {}: {}", claim.title, accepted_of(claim), claim.because));
    if (!claim.miscounted.empty()) shortfalls.insert(fmt::format("! {}: {}", claim.title, claim.miscounted));
  }
  out << fmt::format("{} ({})\n{}\n", thesis.title, thesis.name, thesis.note);
  constexpr auto line = "{:<{}}  {:<{}}  {:>9}  {:<16}  {:>9}  {:>11}  {:<10}  {:<8}  {}\n";
  out << fmt::format(line, "claim", what_width, "setup", setup_width, "published", "accepted", "ours",
                     "error", "role", "stated", "verdict");
  for (const JudgedClaim& claim : thesis.claims) {
    const auto figure = [&](double value) { return fmt::format("{} {}", digits_text(value, 3), claim.unit); };
    const std::string stated = claim.source.empty() || claim.source == to_string(claim.stated_in)
                                   ? std::string(to_string(claim.stated_in))
                                   : claim.source;
    out << fmt::format(line, claim.claim, what_width, setup_of(claim), setup_width,
                       claim.published ? figure(*claim.published) : "-", accepted_of(claim),
                       figure(claim.ours), error_of(claim), to_string(claim.role), stated, verdict_of(claim));
  }
  for (const std::string& reason : reasons) out << reason << '\n';
  for (const std::string& shortfall : shortfalls) out << shortfall << '\n';
  out << "The abstract, in our words, and the lines above that judge it:\n";
  for (const JudgedSentence& judged : thesis.abstract)
    out << fmt::format("- {}: {}\n", judged.sentence.says,
                       judged.sentence.not_judged.empty()
                           ? fmt::format("{} passed, {} failed ({}){}", judged.passed, judged.failed,
                                         fmt::join(judged.sentence.judged_by, "; "),
                                         judged.sentence.not_said.empty()
                                             ? ""
                                             : ". What this does not say: " + judged.sentence.not_said)
                           : "not judged: " + judged.sentence.not_judged);
  for (const auto& [key, text] : thesis.sources)
    if (used.contains(key)) out << fmt::format("{}: {}\n", key, text);
  out << fmt::format("{}: {} passed, {} failed, {} shown: {}\n\n", thesis.name, count[0], count[1], count[2],
                     thesis.passed() ? "as listed" : "FAILED");
}

}  // namespace

std::vector<std::string> reproduction_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  names.emplace_back(layers);
  for (const std::string& thesis : thesis_names()) names.push_back(thesis);
  return names;
}

namespace {

/// Studies of the named theses, or of all that have one. @throws InputError: a name has none
Exit reproduce_where(const ReproduceArguments& arguments) {
  const std::vector<std::string> known = theses_with_where();
  for (const std::string& name : arguments.names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw InputError({"reproduce --where", 0, 0},
                       fmt::format("'{}' has no study of unknown inputs; those that have one are {}", name,
                                   list_of(known)));
  const std::vector<std::string>& names = arguments.names.empty() ? known : arguments.names;
  std::optional<Progress> progress(std::in_place, arguments.progress, "reproducing");
  std::vector<StudyResult> studies;
  for (const std::string& name : names) {
    (*progress)(studies.size(), names.size(), [&] { return name; });
    studies.push_back(run_where(name, all_cores()));
  }
  progress.reset();
  write_stdout([&](std::ostream& out) {
    if (!arguments.json) {
      for (const StudyResult& study : studies) out << table(study) << '\n';
      return;
    }
    JsonWriter json(out);
    json.begin_object();
    json.key("studies");
    json.begin_object();
    for (std::size_t i = 0; i < studies.size(); ++i) {
      json.key(names[i]);
      write_json(studies[i], json);
    }
    json.end_object();
    json.end_object();
    json.raw("\n");
  });
  return Exit::done;
}

}  // namespace

Exit reproduce_command(const ReproduceArguments& arguments) {
  if (arguments.where) return reproduce_where(arguments);
  const auto wanted = [&](const char* name) {
    return arguments.names.empty() ||
           std::find(arguments.names.begin(), arguments.names.end(), name) != arguments.names.end();
  };
  const std::vector<std::string> names = reproduction_names();
  const auto all = static_cast<std::size_t>(std::count_if(
      names.begin(), names.end(), [&](const std::string& name) { return wanted(name.c_str()); }));
  std::optional<Progress> progress(std::in_place, arguments.progress, "reproducing");
  std::size_t done = 0;
  const auto show = [&](const std::string& name) { (*progress)(done++, all, [&] { return name; }); };
  std::vector<Reproduction> reproductions;
  for (const Entry& entry : entries)
    if (wanted(entry.name)) {
      show(entry.name);
      reproductions.push_back(entry.run());
      read_tolerances(reproductions.back());
      judge(reproductions.back());
    }
  std::optional<KernelReproduction> kernels;
  if (wanted(layers)) show(layers), kernels = reproduce_kernels();
  std::vector<ThesisReproduction> theses;
  for (const std::string& thesis : thesis_names())
    if (wanted(thesis.c_str())) show(thesis), theses.push_back(judge(run_thesis(thesis, all_cores())));
  progress.reset();
  write_stdout([&](std::ostream& out) {
    if (arguments.json) return write_reproductions({reproductions, kernels, theses}, out);
    for (const Reproduction& reproduction : reproductions) write_table(reproduction, out);
    if (kernels) write_table(*kernels, out);
    for (const ThesisReproduction& thesis : theses) write_table(thesis, out);
  });
  const auto passed = [](const auto& made) { return made.passed(); };
  const auto as_listed = [](const Reproduction& made) { return made.as_listed(); };
  return std::all_of(reproductions.begin(), reproductions.end(), as_listed) &&
                 (!kernels || kernels->passed()) && std::all_of(theses.begin(), theses.end(), passed)
             ? Exit::done
             : Exit::check_failed;
}

}  // namespace convoy::cli
