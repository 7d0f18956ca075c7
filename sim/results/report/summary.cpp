// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity.h"
#include "sim/results/report/html.h"
#include "sim/results/report/sections.h"
#include "sim/results/report/svg.h"
#include "sim/results/text.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t most_rows = 2000, most_cards = 6;

std::string duration(double seconds) {
  if (seconds < 120) return format_time(seconds);
  if (seconds < 7200) return fmt::format("{} min", number_text(seconds / 60));
  if (seconds < 172'800) return fmt::format("{} h", number_text(seconds / 3600));
  return fmt::format("{} d", number_text(seconds / 86'400));
}

std::string usd(double amount) { return fmt::format("{} USD", number_text(amount)); }

/// Each text once, in order.
template <class Text>
std::vector<std::string> distinct(const std::vector<RunResult>& runs, Text text) {
  std::vector<std::string> words;
  for (const RunResult& run : runs)
    if (const std::string word = text(run); std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(word);
  return words;
}

std::string devices_text(const std::vector<RunResult>& runs) {
  const auto [least, most] = std::minmax_element(
      runs.begin(), runs.end(), [](const RunResult& a, const RunResult& b) { return a.devices < b.devices; });
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
                                        ? context.run(r).strategy
                                        : shortened(context.labels.value_text(r, c), 60);
          std::find(values.begin(), values.end(), value) == values.end())
        values.push_back(value);
    all.push_back(fmt::format("{}: {}", context.labels.path_of(c), some_of(values, 8)));
  }
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : "; ") + one;
  return text;
}

/// The fastest run that fits, or the fastest one if none does.
std::size_t best_of(const ReportContext& context, const std::vector<std::size_t>& runs) {
  return *std::max_element(runs.begin(), runs.end(), [&](std::size_t a, std::size_t b) {
    const RunResult &x = context.run(a), &y = context.run(b);
    return std::pair(x.fits, x.throughput_images_per_s) < std::pair(y.fits, y.throughput_images_per_s);
  });
}

std::string cards_of_one(const RunResult& run) {
  std::string cards = html_card("throughput", number_text(run.throughput_images_per_s), "images/s",
                                fmt::format("{} images a step", number_text(run.global_batch)));
  cards += html_card("step", format_time(run.step_time_s), "", run.bottleneck.text);
  if (run.step_time_s > 0)
    cards += html_card("exposed communication", percent_text(run.exposed_comm_s / run.step_time_s),
                       "of the step", fmt::format("{} sent in a step", format_bytes(run.comm_bytes)));
  cards += html_card("peak memory", format_bytes(run.peak_memory_bytes), "",
                     fmt::format("of {} in the fullest device{}", format_bytes(run.device_memory_bytes),
                                 run.fits ? "" : ": does not fit"));
  if (run.epoch_time_s)
    cards += html_card("epoch", duration(*run.epoch_time_s), "",
                       run.cost_usd_per_epoch ? usd(*run.cost_usd_per_epoch) : "price not known");
  return cards;
}

std::string card_of_best(const ReportContext& context, const std::string& model) {
  const std::vector<std::size_t> runs = context.labels.of_model(model);
  const std::size_t best = best_of(context, runs);
  const RunResult& run = context.run(best);
  const std::vector<std::string> labels = context.labels.labels(runs);
  const auto at = static_cast<std::size_t>(std::find(runs.begin(), runs.end(), best) - runs.begin());
  std::string below = fmt::format("run {}: {}; step {}", run.id, labels[at], format_time(run.step_time_s));
  if (!context.scaling.empty()) below += fmt::format(", scaling {}", percent_text(context.scaling[best]));
  if (run.cost_usd_per_epoch) below += fmt::format(", {} an epoch", usd(*run.cost_usd_per_epoch));
  if (!run.fits) below += "; needs more memory than there is";
  return html_card(fmt::format("{}, fastest of {} {}", model, runs.size(), runs.size() == 1 ? "run" : "runs"),
                   number_text(run.throughput_images_per_s), "images/s", below);
}

struct TableColumn {
  HtmlColumn column;
  std::string (*text)(const RunResult& run);
};

const TableColumn measures[] = {
    {{"devices", true}, [](const RunResult& r) { return std::to_string(r.devices); }},
    {{"step", true}, [](const RunResult& r) { return format_time(r.step_time_s); }},
    {{"images/s", true}, [](const RunResult& r) { return number_text(r.throughput_images_per_s); }},
    {{"exposed comm", true},
     [](const RunResult& r) {
       return r.exposed_comm_s == 0 ? std::string("-") : format_time(r.exposed_comm_s);
     }},
    {{"sent", true},
     [](const RunResult& r) { return r.comm_bytes == 0 ? std::string("-") : format_bytes(r.comm_bytes); }},
    {{"peak memory", true},
     [](const RunResult& r) { return format_bytes(r.peak_memory_bytes) + (r.fits ? "" : " (!)"); }},
    {{"J/image", true},
     [](const RunResult& r) {
       return r.global_batch > 0 ? number_text(r.energy_j / r.global_batch) : std::string("-");
     }},
};

/// Coordinates that have a column of their own; model, cluster and strategy are always columns.
std::vector<std::size_t> table_coordinates(const ReportContext& context) {
  std::vector<std::size_t> columns;
  for (const std::size_t c : context.labels.varying()) {
    const std::string& path = context.labels.path_of(c);
    const auto says_devices = [&](std::size_t r) {
      return context.labels.value_text(r, c) == std::to_string(context.run(r).devices);
    };
    const std::vector<std::size_t> runs = all_runs(context);
    if (path != "model" && path != "cluster" && path != "strategy" &&
        !std::all_of(runs.begin(), runs.end(), says_devices))
      columns.push_back(c);
  }
  return columns;
}

}  // namespace

std::string headline(const ReportContext& context) {
  const std::vector<RunResult>& runs = context.results.runs;
  std::string out = fmt::format("<h1>{}</h1>\n", escaped(context.results.experiment));
  if (runs.empty()) return out + html_paragraph("No runs.", "sub");
  const auto places =
      distinct(runs, [](const RunResult& r) { return fmt::format("{} ({})", r.servers, r.device_type); });
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

std::string runs_table(const ReportContext& context) {
  const std::vector<RunResult>& runs = context.results.runs;
  if (runs.empty()) return {};
  const auto any = [&](auto has) { return std::any_of(runs.begin(), runs.end(), has); };
  const bool models = context.labels.models().size() > 1;
  const bool clusters = context.labels.sweeps("cluster");
  const bool epochs = any([](const RunResult& r) { return r.epoch_time_s.has_value(); });
  const bool costs = any([](const RunResult& r) { return r.cost_usd_per_epoch.has_value(); });
  const bool stale = any([](const RunResult& r) { return r.staleness.has_value(); });
  const std::vector<std::size_t> coordinates = table_coordinates(context);

  std::vector<HtmlColumn> columns{{"run", true}};
  if (models) columns.push_back({"model"});
  if (clusters) columns.push_back({"cluster"});
  columns.push_back({"strategy"});
  for (const std::size_t c : coordinates) columns.push_back({context.labels.name_of(c)});
  for (const TableColumn& measure : measures) columns.push_back(measure.column);
  if (!context.scaling.empty()) columns.push_back({"scaling", true});
  if (epochs) columns.push_back({"epoch", true});
  if (costs) columns.push_back({"USD/epoch", true});
  if (stale) columns.push_back({"staleness", true});
  columns.push_back({"bottleneck"});

  std::vector<bool> best(runs.size());
  if (runs.size() > 1)
    for (const std::string& model : context.labels.models())
      best[best_of(context, context.labels.of_model(model))] = true;
  std::vector<HtmlRow> rows;
  for (std::size_t i = 0; i < std::min(runs.size(), most_rows); ++i) {
    const RunResult& run = runs[i];
    HtmlRow row{{run.id}, !run.fits ? "over" : best[i] ? "best" : ""};
    if (models) row.cells.push_back(run.model);
    if (clusters) row.cells.push_back(run.cluster);
    row.cells.push_back(run.strategy);
    for (const std::size_t c : coordinates) row.cells.push_back(shortened(context.labels.value_text(i, c)));
    for (const TableColumn& measure : measures) row.cells.push_back(measure.text(run));
    if (!context.scaling.empty()) row.cells.push_back(percent_text(context.scaling[i]));
    if (epochs) row.cells.push_back(run.epoch_time_s ? duration(*run.epoch_time_s) : "-");
    if (costs) row.cells.push_back(run.cost_usd_per_epoch ? number_text(*run.cost_usd_per_epoch) : "-");
    if (stale) row.cells.push_back(run.staleness ? number_text(run.staleness->mean) : "-");
    row.cells.push_back(bottleneck_text(run.bottleneck));
    rows.push_back(std::move(row));
  }
  std::string out = "<h2>Runs</h2>\n";
  if (runs.size() > 1)
    out += html_paragraph(fmt::format("The fastest run{} in bold.", models ? " of each model" : ""), "small");
  out += html_table(columns, rows);
  if (any([](const RunResult& r) { return !r.fits; }))
    out += html_paragraph("(!) more than the device's memory: this run would fail.", "small");
  if (runs.size() > most_rows)
    out +=
        html_paragraph(fmt::format("The first {}; results.csv has all {}.", most_rows, runs.size()), "small");
  for (const std::string& line : assumptions(runs)) out += html_paragraph(line, "small");
  return out;
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
