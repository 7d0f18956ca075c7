// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/page/html.h"
#include "sim/page/svg.h"
#include "sim/page/text.h"
#include "sim/results/report/run_columns.h"
#include "sim/results/report/sections.h"
#include "sim/results/text.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_cells = 5000, most_cards = 6;

std::string usd(double amount) { return fmt::format("{} USD", number_text(amount)); }

/// Each text once, in order.
template <class Text>
std::vector<std::string> distinct(const std::vector<RunFigures>& runs, Text text) {
  std::vector<std::string> words;
  for (const RunFigures& run : runs)
    if (const std::string word = text(run); std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(word);
  return words;
}

std::string devices_text(const std::vector<RunFigures>& runs) {
  const auto [least, most] =
      std::minmax_element(runs.begin(), runs.end(),
                          [](const RunFigures& a, const RunFigures& b) { return a.devices < b.devices; });
  if (least->devices == most->devices)
    return fmt::format("{} {}", most->devices, most->devices == 1 ? "device" : "devices");
  return fmt::format("{} to {} devices", least->devices, most->devices);
}

std::string swept_text(const ReportContext& context) {
  std::vector<std::string> all;
  for (const std::size_t c : context.labels.varying()) {
    std::vector<std::string> values;
    for (std::size_t r = 0; r < context.results.runs.size(); ++r)
      if (const std::string value = context.labels.path_of(c) == "strategy"
                                        ? context.run(r).words.strategy
                                        : shortened(context.labels.value_text(r, c), 60);
          std::find(values.begin(), values.end(), value) == values.end())
        values.push_back(value);
    all.push_back(fmt::format("{}: {}", context.labels.path_of(c), some_of(values, 8)));
  }
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : "; ") + one;
  return text;
}

/// "11702 to 16513 at 80 %; ": what its throughput may be; empty if it has no interval.
std::string range_text(const RunFigures& run) {
  if (!run.has_interval) return {};
  const IntervalResult::Range& range = run.throughput_interval_images_per_s;
  return fmt::format("{} to {} at {}; ", number_text(range[0]), number_text(range[1]),
                     percent_text(run.words.interval_level));
}

std::string cards_of_one(const RunFigures& run) {
  std::string cards =
      html_card("throughput", number_text(run.throughput_images_per_s), "images/s",
                fmt::format("{}{} images a step", range_text(run), number_text(run.global_batch)));
  cards += html_card("step", format_time(run.step_time_s), "", run.bottleneck_sentence);
  if (run.step_time_s > 0)
    cards += html_card("exposed communication", percent_text(run.exposed_comm_s / run.step_time_s),
                       "of the step", fmt::format("{} sent in a step", format_bytes(run.comm_bytes)));
  cards += html_card("peak memory", format_bytes(run.peak_memory_bytes), "",
                     fmt::format("of {} in the fullest device{}", format_bytes(run.device_memory_bytes),
                                 run.fits ? "" : ": does not fit"));
  if (run.epoch_time_s)
    cards += html_card("epoch", duration_text(*run.epoch_time_s), "",
                       run.cost_usd_per_epoch ? usd(*run.cost_usd_per_epoch) : "price not known");
  return cards;
}

std::string card_of_best(const ReportContext& context, const std::string& model) {
  const std::vector<std::size_t> runs = context.labels.of_model(model);
  const std::size_t best = best_of(context, runs);
  const RunFigures& run = context.run(best);
  std::string below = fmt::format("{}run {}: {}; step {}", range_text(run), run.id,
                                  context.labels.label(best, runs), format_time(run.step_time_s));
  if (!context.scaling.empty()) below += fmt::format(", scaling {}", percent_text(context.scaling[best]));
  if (run.cost_usd_per_epoch) below += fmt::format(", {} an epoch", usd(*run.cost_usd_per_epoch));
  if (!run.fits) below += "; needs more memory than there is";
  return html_card(fmt::format("{}, fastest of {} {}", model, runs.size(), runs.size() == 1 ? "run" : "runs"),
                   number_text(run.throughput_images_per_s), "images/s", below);
}

}  // namespace

std::string headline(const ReportContext& context) {
  const std::vector<RunFigures>& runs = context.results.runs;
  std::string out = fmt::format("<h1>{}</h1>\n", escaped(context.results.experiment));
  if (runs.empty()) return out + html_paragraph("No runs.", "sub");
  const auto places = distinct(
      runs, [](const RunFigures& r) { return fmt::format("{} ({})", r.words.servers, r.words.device_type); });
  out += html_paragraph(fmt::format("{} {} of {} on {}, {}; simulated with convoy {}.", runs.size(),
                                    runs.size() == 1 ? "run" : "runs", some_of(context.labels.models(), 6),
                                    some_of(places, 4), devices_text(runs), context.results.manifest.version),
                        "sub");
  if (const std::string swept = swept_text(context); !swept.empty())
    out += html_paragraph("Swept: " + swept + ".", "sub");
  out += "<div class=\"cards\">\n";
  if (runs.size() == 1) {
    out += cards_of_one(runs.front());
  } else {
    for (std::size_t m = 0; m < std::min(most_cards, context.labels.models().size()); ++m)
      out += card_of_best(context, context.labels.models()[m]);
  }
  return out + "</div>\n";
}

void write_runs_table(const ReportContext& context, std::ostream& out) {
  const std::vector<RunFigures>& runs = context.results.runs;
  const std::vector<RunColumn> all = run_columns(context);
  std::vector<const RunColumn*> shown;
  std::vector<HtmlColumn> columns;
  for (const RunColumn& column : all) {
    if (!column.shown) continue;
    shown.push_back(&column);
    columns.push_back({column.title, column.form != CellForm::text});
  }
  const std::vector<std::size_t> best = best_runs(context);
  const std::size_t rows_shown = std::min(runs.size(), most_cells / shown.size());
  std::vector<HtmlRow> rows;
  for (std::size_t i = 0; i < rows_shown; ++i) {
    const bool is_best = std::find(best.begin(), best.end(), i) != best.end();
    HtmlRow row{{}, !runs[i].fits ? "over" : is_best ? "best" : ""};
    for (const RunColumn* column : shown) row.cells.push_back(cell_text(*column, runs[i], i));
    rows.push_back(std::move(row));
  }
  out << "<h2>Runs</h2>\n";
  if (runs.size() > 1)
    out << html_paragraph(
        fmt::format("The fastest run{} in bold.", context.labels.models().size() > 1 ? " of each model" : ""),
        "small");
  out << fmt::format(
      "<div id=\"runs-table\" class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Runs\">{}</div>\n",
      html_plain_table(columns, rows));
  if (runs.size() > 1) {
    out << "<script type=\"application/json\" id=\"runs-data\">";
    write_columns(context, all, out);
    out << "</script>\n";
  }
  if (std::any_of(runs.begin(), runs.end(), [](const RunFigures& r) { return !r.fits; }))
    out << html_paragraph("(!) more than the device's memory: this run would fail.", "small");
  if (runs.size() > rows_shown)
    out << html_paragraph(fmt::format("The first {}; results.csv has all {}.", rows_shown, runs.size()),
                          "small part");
  for (const std::string& line : assumptions(context.results)) out << html_paragraph(line, "small");
  out << "<div id=\"runs-end\"></div>\n";
}

std::string manifest_section(const ReportContext& context) {
  const Manifest& manifest = context.results.manifest;
  std::string out = "<h2>Where this comes from</h2>\n<table>\n";
  const auto row = [&](std::string_view name, std::string_view value) {
    out += fmt::format("<tr><td>{}</td><td class=\"hash\">{}</td></tr>\n", escaped(name), escaped(value));
  };
  row("convoy", manifest.version);
  row("SimGrid", manifest.simgrid);
  row("links shared", manifest.network_model);
  row("experiment (SHA-256)", manifest.config_sha256);
  for (const auto& [file, sha256] : manifest.inputs) row(fmt::format("{} (SHA-256)", file), sha256);
  out += "</table>\n";
  if (!manifest.inputs.empty()) {
    std::string command = "convoy run " + manifest.inputs.front().first;
    for (const std::string& setting : manifest.set) command += " --set " + setting;
    out += fmt::format("<p>Repeat with <code>{}</code></p>\n", escaped(command));
  }
  return out + html_paragraph("All numbers: results.json and results.csv beside this page.", "small");
}

}  // namespace convoy::results
