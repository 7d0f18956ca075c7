// SPDX-License-Identifier: MIT
#include "sim/results/write_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <ranges>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"
#include "sim/page/text.h"
#include "sim/results/schedule_summary.h"
#include "sim/results/text.h"
#include "sim/results/write_search.h"

namespace convoy::inline results {
namespace {

struct Column {
  std::string title;
  bool left;
  std::function<std::string(std::size_t run)> cell;
};

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

/// Columns of the sweep that distinguish runs, apart from model, strategy and number of devices, which have
/// their own.
std::vector<Column> coordinate_columns(const std::vector<RunFigures>& runs) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < runs.front().point.size(); ++i) {
    const std::string& path = runs.front().point[i].first;
    if (path == "model" || path == "strategy" || path == "cluster") continue;
    const auto says_devices = [&](const RunFigures& r) {
      return r.point[i].second.scalar == std::to_string(r.devices);
    };
    if (std::all_of(runs.begin(), runs.end(), says_devices)) continue;
    columns.push_back({last_key(path), true, [&runs, i](std::size_t r) {
                         return shortened(clean(to_flow(runs[r].point[i].second)));
                       }});
  }
  return columns;
}

template <class Text>
Column column(const std::vector<RunFigures>& runs, const char* title, bool left, Text text) {
  return {title, left, [&runs, text](std::size_t r) { return clean(text(runs[r])); }};
}

template <class Value>
bool differs(const std::vector<RunFigures>& runs, Value value) {
  return std::any_of(runs.begin(), runs.end(),
                     [&](const RunFigures& r) { return value(r) != value(runs.front()); });
}

/// "4-8: 2.2 s, 8-3: 51 us"; without changes between steps of one kind and another on the same devices.
std::string pauses(const RunResult& run) {
  std::string text;
  for (const ReconfigurationResult& change : run.reconfigurations) {
    if (change.from == change.to && change.pause_s == 0) continue;
    text += fmt::format("{}{}-{}: {}", text.empty() ? "" : ", ", change.from, change.to,
                        format_time(change.pause_s));
  }
  return text.empty() ? "-" : shortened(text);
}

std::vector<Column> all_columns(const SweepResults& results) {
  const std::vector<RunFigures>& runs = results.runs;
  std::vector<Column> columns;
  const auto& point = runs.front().point;
  if (std::any_of(point.begin(), point.end(),
                  [](const auto& coordinate) { return coordinate.first == "cluster"; }))
    columns.push_back(
        column(runs, "cluster", true, [](const RunFigures& r) { return shortened(r.words.cluster); }));
  columns.push_back(column(runs, "strategy", true, [](const RunFigures& r) {
    const std::string chosen =
        r.words.algorithms.empty() ? "" : fmt::format(" ({})", fmt::join(r.words.algorithms, ", "));
    return shortened((r.has_search ? "auto: " : "") + r.words.strategy + chosen);
  }));
  for (Column& c : coordinate_columns(runs)) columns.push_back(std::move(c));
  columns.push_back(
      column(runs, "devices", false, [](const RunFigures& r) { return std::to_string(r.devices); }));
  columns.push_back(
      column(runs, "step", false, [](const RunFigures& r) { return format_time(r.step_time_s); }));
  columns.push_back(column(runs, "images/s", false, [](const RunFigures& r) {
    const std::string doubt = doubt_text(r);
    return number_text(r.throughput_images_per_s) + (doubt.empty() ? "" : " " + doubt);
  }));
  if (std::vector<double> efficiency = scaling_efficiency(results); !efficiency.empty())
    columns.push_back({"scaling", false,
                       [shares = std::move(efficiency)](std::size_t r) { return percent_text(shares[r]); }});
  columns.push_back(column(runs, "exposed comm", false, [](const RunFigures& r) {
    return r.exposed_comm_s == 0 ? std::string("-") : format_time(r.exposed_comm_s);
  }));
  columns.push_back(column(runs, "sent", false, [](const RunFigures& r) {
    return r.comm_bytes == 0 ? std::string("-") : format_bytes(r.comm_bytes);
  }));
  columns.push_back(column(runs, "peak memory", false, [](const RunFigures& r) {
    return format_bytes(r.peak_memory_bytes) + (r.fits ? "" : " (!)");
  }));
  const auto pauses_of = [&results](std::size_t r) {
    return results.runs[r].has_changes ? clean(pauses(*results.whole(r))) : "-";
  };
  const auto numbers = std::views::iota(std::size_t{0}, runs.size());
  if (std::ranges::any_of(numbers, [&](std::size_t r) { return pauses_of(r) != "-"; }))
    columns.push_back({"pauses", true, pauses_of});
  columns.push_back(column(runs, "bottleneck", true, [](const RunFigures& r) { return bottleneck_text(r); }));
  return columns;
}

std::string line_of(const std::vector<Column>& columns, const std::vector<std::size_t>& widths, auto cell) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c)
    line += (c ? "  " : "") + padded(cell(columns[c]), widths[c], columns[c].left);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

/// " on dgx1-v100 (v100-sxm2-16gb)" if all runs have the same kind of server.
std::string place(const std::vector<RunFigures>& runs) {
  if (differs(runs, [](const RunFigures& r) { return r.words.servers + '\n' + r.words.device_type; }))
    return {};
  return fmt::format(" on {} ({})", runs.front().words.servers, runs.front().words.device_type);
}

/// Columns of a queue's table: values that only some queues have come last, if any queue has them.
std::string schedule_line(const std::vector<std::string>& cells) {
  std::string line = cells[0] + std::string(cells[0].size() < 16 ? 16 - cells[0].size() : 0, ' ');
  for (std::size_t c = 1; c < cells.size(); ++c) {
    constexpr std::size_t width = 15;
    line += "  " + std::string(width - std::min(width, width_of(cells[c])), ' ') + cells[c];
  }
  return line + '\n';
}

/// "400 jobs, one every 2 min on average (seed 1)", and one line per policy.
std::string schedule_table(const std::vector<ScheduleSummary>& schedules) {
  std::string text;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    const ScheduleSummary& s = schedules[i];
    std::vector<std::string> titles{"policy", "mean completion", "all done", "GPUs held", "changes"};
    std::vector<std::string> cells{s.policy, s.completion_text(), format_time(s.makespan_s),
                                   percent_text(s.busy_share), fmt::format("{:.0f}", s.changes)};
    const auto optional_column = [&](const char* title, const std::optional<double>& share) {
      if (!share) return;
      titles.emplace_back(title);
      cells.push_back(percent_text(*share));
    };
    optional_column("deadlines met", s.deadlines_met);
    optional_column("GPUs scattered", s.scattered_share);
    optional_column("lost to sharing", s.sharing_loss);
    if (i == 0 || s.mean_interval_s != schedules[i - 1].mean_interval_s)
      text += fmt::format("\n{}\n{}", s.load_text(), schedule_line(titles));
    text += schedule_line(cells);
  }
  return text;
}

}  // namespace

void write_table(const SweepResults& results, std::ostream& out) {
  const std::vector<RunFigures>& runs = results.runs;
  if (runs.empty()) return;
  const std::vector<Column> columns = all_columns(results);
  std::vector<std::size_t> widths;
  for (const Column& c : columns) {
    std::size_t width = width_of(c.title);
    for (std::size_t r = 0; r < runs.size(); ++r) width = std::max(width, width_of(c.cell(r)));
    widths.push_back(width);
  }
  const std::string header = line_of(columns, widths, [](const Column& c) { return c.title; });
  std::vector<std::string> models;
  for (const RunFigures& run : runs)
    if (std::find(models.begin(), models.end(), run.words.model) == models.end())
      models.push_back(run.words.model);
  for (const std::string& model : models) {
    out << fmt::format("{}{}{}\n{}", &model == &models.front() ? "" : "\n", clean(model), clean(place(runs)),
                       header);
    for (std::size_t r = 0; r < runs.size(); ++r)
      if (runs[r].words.model == model)
        out << line_of(columns, widths, [&](const Column& c) { return c.cell(r); });
  }
  if (std::any_of(runs.begin(), runs.end(), [](const RunFigures& r) { return !r.fits; }))
    out << "\n(!) more than the device's memory: this run would fail\n";
  out << "\n";
  for (const std::string& line : assumptions(results)) out << clean(line) << "\n";
  out << search_tables(results) << schedule_table(summaries(results.schedules));
}

}  // namespace convoy::results
