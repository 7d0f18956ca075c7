// SPDX-License-Identifier: MIT
#include "sim/results/report/run_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "sim/base/quantity.h"
#include "sim/page/text.h"
#include "sim/results/json_writer.h"
#include "sim/results/text.h"

namespace convoy::inline results {
namespace {

using Number = std::optional<double> (*)(const RunFigures& run);

/// A figure of every run. Some stand on the page as it is, the others where scripts add them.
struct Figure {
  const char* title;
  CellForm form;
  bool shown;
  Number number;
  bool dash = false, limit = false;
};

std::optional<double> per_image(const RunFigures& run, double value) {
  return run.global_batch > 0 ? std::optional(value / run.global_batch) : std::nullopt;
}

const Figure figures[] = {
    {"devices", CellForm::count, true,
     [](const RunFigures& r) -> std::optional<double> { return r.devices; }},
    {"images a step", CellForm::number, false,
     [](const RunFigures& r) -> std::optional<double> { return r.global_batch; }},
    {"step", CellForm::time, true,
     [](const RunFigures& r) -> std::optional<double> { return r.step_time_s; }},
    {"step, lowest", CellForm::time, false,
     [](const RunFigures& r) { return r.has_interval ? std::optional(r.step_interval_s[0]) : std::nullopt; }},
    {"step, highest", CellForm::time, false,
     [](const RunFigures& r) { return r.has_interval ? std::optional(r.step_interval_s[1]) : std::nullopt; }},
    {"images/s", CellForm::number, true,
     [](const RunFigures& r) -> std::optional<double> { return r.throughput_images_per_s; }},
    {"computing", CellForm::time, false,
     [](const RunFigures& r) -> std::optional<double> { return r.compute_s - r.issue_wait_s; }},
    {"waiting for the host", CellForm::time, false,
     [](const RunFigures& r) -> std::optional<double> { return r.issue_wait_s; }, true},
    {"exposed comm", CellForm::time, true,
     [](const RunFigures& r) -> std::optional<double> { return r.exposed_comm_s; }, true},
    {"idle", CellForm::time, false, [](const RunFigures& r) -> std::optional<double> { return r.idle_s; },
     true},
    {"bubble", CellForm::share, false,
     [](const RunFigures& r) -> std::optional<double> { return r.bubble_fraction; }},
    {"sent", CellForm::bytes, true, [](const RunFigures& r) -> std::optional<double> { return r.comm_bytes; },
     true},
    {"peak memory", CellForm::bytes, true,
     [](const RunFigures& r) -> std::optional<double> { return r.peak_memory_bytes; }, false, true},
    {"process memory", CellForm::bytes, false,
     [](const RunFigures& r) -> std::optional<double> { return r.process_memory_bytes; }},
    {"load imbalance", CellForm::number, false,
     [](const RunFigures& r) -> std::optional<double> { return r.load_imbalance; }},
    {"J/image", CellForm::number, true, [](const RunFigures& r) { return per_image(r, r.energy_j); }},
};

/// What only some experiments know, behind the scaling efficiency.
const Figure last_figures[] = {
    {"epoch", CellForm::duration, true,
     [](const RunFigures& r) -> std::optional<double> { return r.epoch_time_s; }},
    {"USD/epoch", CellForm::number, true,
     [](const RunFigures& r) -> std::optional<double> { return r.cost_usd_per_epoch; }},
    {"staleness", CellForm::number, true,
     [](const RunFigures& r) -> std::optional<double> { return r.mean_staleness; }},
};

RunColumn column_of(const ReportContext& context, const Figure& figure) {
  RunColumn column{figure.title, figure.form, figure.shown, false, figure.dash, figure.limit};
  column.number = [&context, number = figure.number](std::size_t r) { return number(context.run(r)); };
  return column;
}

RunColumn words(const ReportContext& context, const char* title, std::string (*text)(const RunFigures& run)) {
  RunColumn column{title};
  column.text = [&context, text](std::size_t r) { return text(context.run(r)); };
  return column;
}

/// Whether the runs that have the same text have the same value of a coordinate, so that the text says it.
bool says(const ReportContext& context, std::size_t coordinate, auto text) {
  std::map<std::string, std::string> values;
  for (std::size_t r = 0; r < context.results.runs.size(); ++r) {
    const std::string value = context.labels.value_text(r, coordinate);
    if (const auto [known, fresh] = values.emplace(text(context.run(r)), value);
        !fresh && known->second != value)
      return false;
  }
  return true;
}

bool says_devices(const ReportContext& context, std::size_t coordinate) {
  const std::vector<std::size_t> runs = all_runs(context);
  return std::all_of(runs.begin(), runs.end(), [&](std::size_t r) {
    return context.labels.value_text(r, coordinate) == std::to_string(context.run(r).devices);
  });
}

/// Coordinates that have a column of their own: those that no column says which is there anyway.
std::vector<std::size_t> table_coordinates(const ReportContext& context) {
  std::vector<std::size_t> columns;
  for (const std::size_t c : context.labels.varying()) {
    const std::string& path = context.labels.path_of(c);
    const bool said =
        says_devices(context, c) ||
        (path == "model" && says(context, c, [](const RunFigures& r) { return r.words.model; })) ||
        (path == "cluster" && says(context, c, [](const RunFigures& r) { return r.words.cluster; })) ||
        (path == "strategy" && says(context, c, [](const RunFigures& r) { return r.words.strategy; }));
    if (!said) columns.push_back(c);
  }
  return columns;
}

/// A coordinate's values, in full where they differ only behind what is left of long ones.
RunColumn column_of_coordinate(const ReportContext& context, std::size_t coordinate) {
  RunColumn column{context.labels.name_of(coordinate), CellForm::text, true, true};
  std::set<std::string> in_full, cut;
  for (std::size_t r = 0; r < context.results.runs.size(); ++r) {
    const std::string text = context.labels.value_text(r, coordinate);
    if (in_full.insert(text).second) cut.insert(shortened(text));
  }
  column.text = [&context, coordinate, is_cut = cut.size() == in_full.size()](std::size_t r) {
    const std::string text = context.labels.value_text(r, coordinate);
    return is_cut ? shortened(text) : text;
  };
  column.number = [&context, coordinate](std::size_t r) { return context.labels.value_of(r, coordinate); };
  return column;
}

const char* name_of(CellForm form) {
  constexpr const char* names[] = {"text", "count", "number", "time", "duration", "bytes", "share"};
  return names[static_cast<std::size_t>(form)];
}

/// Nine digits are more than any form shows.
void write_number(JsonWriter& json, const std::optional<double>& number) {
  if (!number) return json.null();
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), *number, std::chars_format::general, 9);
  json.raw({text.data(), end});
}

/// Each text once, and of each run which one.
void write_texts(JsonWriter& json, const RunColumn& column, std::size_t runs) {
  std::map<std::string, std::uint32_t> places;
  std::vector<std::uint32_t> place;  // by run
  std::vector<std::size_t> first;    // a run that has the text
  for (std::size_t r = 0; r < runs; ++r) {
    const auto [known, fresh] = places.emplace(column.text(r), static_cast<std::uint32_t>(first.size()));
    if (fresh) first.push_back(r);
    place.push_back(known->second);
  }
  json.key("texts");
  json.begin_array();
  for (const std::size_t r : first) json.value(column.text(r));
  json.end_array();
  if (column.number) {
    json.key("sizes");
    json.begin_array();
    for (const std::size_t r : first) write_number(json, column.number(r));
    json.end_array();
  }
  json.key("values");
  json.begin_array();
  for (const std::uint32_t p : place) json.value(static_cast<std::int64_t>(p));
  json.end_array();
}

}  // namespace

std::size_t best_of(const ReportContext& context, const std::vector<std::size_t>& runs) {
  return *std::max_element(runs.begin(), runs.end(), [&](std::size_t a, std::size_t b) {
    const RunFigures &x = context.run(a), &y = context.run(b);
    return std::pair(x.fits, x.throughput_images_per_s) < std::pair(y.fits, y.throughput_images_per_s);
  });
}

std::vector<std::size_t> best_runs(const ReportContext& context) {
  std::vector<std::size_t> best;
  if (context.results.runs.size() > 1)
    for (const std::string& model : context.labels.models())
      best.push_back(best_of(context, context.labels.of_model(model)));
  return best;
}

std::vector<RunColumn> run_columns(const ReportContext& context) {
  std::vector<RunColumn> columns{{"run", CellForm::count}};
  columns.back().number = [&context](std::size_t r) { return parse_number(context.run(r).id); };
  const std::vector<std::size_t> coordinates = table_coordinates(context);
  const auto add = [&](const char* title, std::string (*text)(const RunFigures& run)) {
    columns.push_back(words(context, title, text));
    columns.back().swept = context.labels.sweeps(title) &&
                           std::none_of(coordinates.begin(), coordinates.end(),
                                        [&](std::size_t c) { return context.labels.path_of(c) == title; });
  };
  if (context.labels.models().size() > 1) add("model", [](const RunFigures& r) { return r.words.model; });
  if (context.labels.sweeps("cluster")) add("cluster", [](const RunFigures& r) { return r.words.cluster; });
  add("strategy", [](const RunFigures& r) { return r.words.strategy; });
  const std::size_t first = columns.size();
  for (const std::size_t c : coordinates) columns.push_back(column_of_coordinate(context, c));
  const std::vector<std::size_t>& varying = context.labels.varying();
  const bool devices_swept =
      std::any_of(varying.begin(), varying.end(), [&](std::size_t c) { return says_devices(context, c); });
  for (const Figure& figure : figures) {
    columns.push_back(column_of(context, figure));
    columns.back().swept = devices_swept && columns.back().title == "devices";
    if (columns.back().title == "images/s" &&
        std::any_of(context.results.runs.begin(), context.results.runs.end(),
                    [](const RunFigures& r) { return !doubt_text(r).empty(); }))
      columns.push_back(words(context, "80 % interval", &doubt_text));
  }
  if (!context.scaling.empty())
    columns.push_back({.title = "scaling", .form = CellForm::share, .number = [&context](std::size_t r) {
                         return std::optional(context.scaling[r]);
                       }});
  for (const Figure& figure : last_figures) columns.push_back(column_of(context, figure));
  columns.push_back(words(context, "bottleneck", [](const RunFigures& r) { return bottleneck_text(r); }));
  // A filter names a column by its title: where two have the same, a coordinate has its path.
  std::map<std::string, std::size_t> titles;
  for (const RunColumn& column : columns) ++titles[column.title];
  for (std::size_t i = 0; i < coordinates.size(); ++i)
    if (RunColumn& column = columns[first + i]; titles[column.title] > 1) {
      const std::string path = context.labels.path_of(coordinates[i]);
      column.title = path == column.title ? path + " as given" : path;
    }
  const std::vector<std::size_t> runs = all_runs(context);
  std::erase_if(columns, [&](const RunColumn& column) {
    return !column.text &&
           std::ranges::none_of(runs, [&](std::size_t r) { return column.number(r).has_value(); });
  });
  return columns;
}

std::string cell_text(const RunColumn& column, const RunFigures& run, std::size_t index) {
  if (column.form == CellForm::text) return column.text(index);
  const std::optional<double> number = column.number(index);
  if (!number || (column.dash && *number == 0)) return "-";
  const auto text = [&]() -> std::string {
    switch (column.form) {
      case CellForm::time:
        return format_time(*number);
      case CellForm::duration:
        return duration_text(*number);
      case CellForm::bytes:
        return format_bytes(*number);
      case CellForm::share:
        return percent_text(*number);
      case CellForm::count:
        return fmt::format("{:.0f}", *number);
      case CellForm::number:
      case CellForm::text:
        break;
    }
    return number_text(*number);
  };
  return text() + (column.limit && !run.fits ? " (!)" : "");
}

void write_columns(const ReportContext& context, const std::vector<RunColumn>& columns, std::ostream& out) {
  JsonWriter json(out, JsonWriter::Style::in_page);
  const std::size_t count = context.results.runs.size();
  json.begin_object();
  json.key("columns");
  json.begin_array();
  for (const RunColumn& column : columns) {
    json.begin_object();
    json.field("title", column.title);
    json.field("form", name_of(column.form));
    if (!column.shown) json.field("shown", false);
    if (column.swept) json.field("swept", true);
    if (column.dash) json.field("dash", true);
    if (column.limit) json.field("limit", true);
    if (column.form == CellForm::text) {
      write_texts(json, column, count);
    } else {
      json.key("values");
      json.begin_array();
      for (std::size_t r = 0; r < count; ++r) write_number(json, column.number(r));
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
  const auto runs = [&](const char* name, const std::vector<std::size_t>& which) {
    json.key(name);
    json.begin_array();
    for (const std::size_t run : which) json.value(static_cast<std::int64_t>(run));
    json.end_array();
  };
  std::vector<std::size_t> over;
  for (std::size_t r = 0; r < count; ++r)
    if (!context.run(r).fits) over.push_back(r);
  runs("over", over);
  runs("best", best_runs(context));
  json.end_object();
}

}  // namespace convoy::results
