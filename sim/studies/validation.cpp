// SPDX-License-Identifier: MIT
#include "sim/studies/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "sim/base/csv.h"
#include "sim/base/quantity.h"
#include "sim/results/field_schema.h"
#include "sim/results/field_writer.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/run/workers.h"

namespace convoy::inline studies {
namespace {

/// Columns that are keys of an experiment, under a shorter name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> key_columns{{
    {"model", "model"},
    {"batch_per_device", "training.batch_per_device"},
    {"framework", "training.framework"},
    {"execution", "training.execution"},
    {"precision", "training.precision"},
    {"layout", "training.layout"},
    {"optimizer", "training.optimizer"},
    {"strategy", "strategy"},
    {"server", "cluster.server"},
}};

/// One device in a host, alone: nothing is sent.
constexpr const char* one_device =
    "{name: one, nodes: [{name: n, count: 1, server: host}], "
    "fabric: {kind: switch, bandwidth: 10Gbps, latency: 50us, protocol: ideal}, "
    "servers: {host: {devices: [{device: none, count: 1}], interconnect: {kind: none}}}}";

/// A cell as YAML, at its place.
YamlNode value_of(const CsvCell& cell) {
  YamlNode node = parse_yaml(cell.text, cell.pos.file);
  node.pos = node.key_pos = cell.pos;
  return node;
}

std::int64_t count_in(const CsvTable& table, const CsvRow& row, std::string_view column) {
  const CsvCell* cell = table.find(row, column);
  if (cell == nullptr) return 1;
  const double number = table.number(row, column, true);
  if (number != std::floor(number) || number > 1e6)
    throw InputError(cell->pos, fmt::format("{}: expected a whole number, found {}", column, cell->text));
  return static_cast<std::int64_t>(number);
}

void set_cluster(const CsvTable& table, const CsvRow& row, YamlNode& tree) {
  const CsvCell *server = table.find(row, "server"), *device = table.find(row, "device");
  if ((server == nullptr) == (device == nullptr))
    throw InputError(row.front().pos, "expected a server or a device in every row, and not both");
  for (const char* column : {"nodes", "devices_per_node"}) {
    const std::int64_t count = count_in(table, row, column);
    const CsvCell* cell = table.find(row, column);
    if (server != nullptr && cell != nullptr)
      set_path(tree, fmt::format("cluster.{}", column), value_of(*cell));
    else if (count > 1)
      throw InputError(cell->pos, fmt::format("{}: several devices need a server, which says how they are "
                                              "joined; a device alone is one",
                                              column));
  }
  if (server == nullptr) {
    set_path(tree, "cluster", parse_yaml(one_device, device->pos.file));
    set_path(tree, "cluster.servers.host.devices.0.device", value_of(*device));
  }
}

/// The experiment that a row describes.
YamlNode experiment_of(const CsvTable& table, const CsvRow& row) {
  const bool alone = table.find(row, "device") != nullptr;
  YamlNode tree = parse_yaml(alone ? "{experiment: row, strategy: {kind: single}}"
                                   : "{experiment: row, strategy: {kind: data_parallel, sync: all_reduce}}",
                             row.front().pos.file);
  for (const auto& [column, path] : key_columns)
    if (const CsvCell* cell = table.find(row, column)) set_path(tree, path, value_of(*cell));
  set_cluster(table, row, tree);
  for (const std::string& column : table.columns())
    if (column.find('.') != std::string::npos)
      if (const CsvCell* cell = table.find(row, column)) set_path(tree, column, value_of(*cell));
  return tree;
}

/// Whether a row describes devices itself, which a file for the catalogue could not name as its base.
bool describes_devices(const ValidatedRow& row) {
  return std::ranges::any_of(row.cells, [](const auto& cell) {
    return cell.first == "cluster.devices" || cell.first.starts_with("cluster.devices.");
  });
}

/// Dotted columns are keys of an experiment, which are checked where it is read.
void check_columns(const CsvTable& table) {
  std::vector<std::string> known = validation_columns();
  for (std::string& column : table.columns())
    if (column.find('.') != std::string::npos) known.push_back(std::move(column));
  table.expect(known, {"model", "batch_per_device", "images_per_s"});
}

// The terms and the factors of their speed that are tried: 1 first, then 2^(k/4) from 1/2 to 2.

constexpr std::array<std::string_view, 4> terms{"kernels", "host", "network", "loader"};

std::vector<double> factors() {
  std::vector<double> all{1};
  for (int k = -4; k <= 4; ++k)
    if (k != 0) all.push_back(std::exp2(k / 4.0));
  return all;
}

RunResult predict(const Point& point, std::size_t term, double factor, Preparer& preparer) {
  WhatIf change;
  if (terms[term] == "kernels") change.compute = factor;
  if (terms[term] == "host") change.issue = factor;
  if (terms[term] == "network") change.bandwidth = factor;
  PreparedRun run = preparer.prepare(point, nullptr, change);
  if (terms[term] == "loader" && run.plan.input)
    for (double& interval_s : run.plan.input->interval_s) interval_s /= factor;
  return simulate(run, false).result;
}

/// images/s as it is with the interval's ends (or nan), then by term and factor.
std::string predictions(const Point& point, Preparer& preparer) {
  const RunResult as_is = predict(point, 0, 1, preparer);
  std::string line = shortest(as_is.throughput_images_per_s);
  for (const std::size_t end : {0, 1})
    line += as_is.interval ? " " + shortest(as_is.interval->throughput_images_per_s[end]) : " -";
  const std::vector<double> tried = factors();
  for (std::size_t term = 0; term < terms.size(); ++term)
    for (std::size_t f = 1; f < tried.size(); ++f)
      line += " " + shortest(predict(point, term, tried[f], preparer).throughput_images_per_s);
  return line;
}

double mean_error(const std::vector<ValidatedRow>& rows, const std::vector<double>& predicted) {
  double sum = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) sum += std::abs(predicted[r] / rows[r].measured - 1);
  return sum / static_cast<double>(rows.size());
}

}  // namespace

const std::vector<std::string>& validation_columns() {
  static const std::vector<std::string> columns = [] {
    std::vector<std::string> all;
    for (const auto& [column, path] : key_columns) all.emplace_back(column);
    all.insert(all.end(), {"device", "nodes", "devices_per_node", "images_per_s", "source", "note"});
    return all;
  }();
  return columns;
}

Validation validate_rows(const std::string& file, std::size_t jobs,
                         const std::function<void(std::size_t done, std::size_t all)>& progress) {
  const CsvTable table(file, {}, {});
  check_columns(table);
  if (table.rows().empty()) throw InputError({file, 0, 0}, "has no rows");
  Validation result;
  Preparer preparer;  // each worker goes on with a copy of its own
  std::vector<Point> points;
  for (const CsvRow& row : table.rows()) {
    ValidatedRow& of = result.rows.emplace_back();
    of.measured = table.number(row, "images_per_s", true);
    for (const std::string& column : table.columns())
      if (const CsvCell* cell = table.find(row, column)) of.cells.emplace_back(column, cell->text);
    points.push_back(read_point(experiment_of(table, row)));
    preparer.read_parts(points.back());
  }

  Refits refits;
  for (std::size_t r = 0; r < points.size(); ++r) {
    const CsvRow& row = table.rows()[r];
    if (describes_devices(result.rows[r])) continue;
    try {
      refits.add(preparer.prepare(points[r], nullptr), table.text(row, "model"), result.rows[r].measured);
    } catch (const InputError& error) {
      throw InputError(row.front().pos, std::string("cannot be predicted: ") + error.what());
    }
  }
  result.refits = refits.fit(file);

  const std::vector<double> tried = factors();
  std::vector<std::vector<double>> by_trial(terms.size() * tried.size(), std::vector<double>(points.size()));
  std::size_t done = 0;
  std::optional<std::pair<std::size_t, std::string>> wrong;  // of the first row that cannot be predicted
  const FirstHalf work = [&](std::size_t r) -> SecondHalf {
    return [&, r] { return predictions(points[r], preparer); };
  };
  run_in_workers(points.size(), jobs, work, [&](std::size_t r, WorkerAnswer answer) {
    progress(++done, points.size());
    if (answer.kind != WorkerAnswer::Kind::done) {
      if (!wrong || r < wrong->first) wrong = {r, answer.bytes};
      return;
    }
    std::istringstream words(answer.bytes);
    std::string value, low, high;
    words >> value >> low >> high;
    ValidatedRow& row = result.rows[r];
    row.predicted = std::stod(value);
    if (low != "-") row.interval = {std::stod(low), std::stod(high)};
    for (std::size_t t = 0; t < by_trial.size(); ++t) {
      const bool as_is = t % tried.size() == 0;
      if (!as_is) words >> value;
      by_trial[t][r] = as_is ? row.predicted : std::stod(value);
    }
  });
  if (wrong)
    throw InputError(table.rows()[wrong->first].front().pos, "cannot be predicted: " + wrong->second);

  std::vector<double> errors;
  double inside = 0, with_interval = 0;
  for (const ValidatedRow& row : result.rows) {
    errors.push_back(row.error());
    if (!row.interval) continue;
    ++with_interval;
    inside += (*row.interval)[0] <= row.measured && row.measured <= (*row.interval)[1] ? 1 : 0;
  }
  if (with_interval > 0) result.coverage = inside / with_interval;
  for (std::size_t term = 0; term < terms.size(); ++term) {
    const std::size_t first = term * tried.size();
    ValidatedTerm best{std::string(terms[term]), 1, mean_error(result.rows, by_trial[first]), 0};
    best.after = best.before;
    bool matters = false;
    for (std::size_t f = 1; f < tried.size(); ++f) {
      matters = matters || by_trial[first + f] != by_trial[first];
      if (const double mean = mean_error(result.rows, by_trial[first + f]); mean < best.after)
        best.after = mean, best.factor = tried[f];
    }
    if (matters) result.terms.push_back(best);
  }
  std::stable_sort(result.terms.begin(), result.terms.end(),
                   [](const ValidatedTerm& a, const ValidatedTerm& b) { return a.after < b.after; });
  result.summary = summaries_by_group({{{"", "", "all"}, errors}}).front();
  return result;
}

namespace {

constexpr auto row_fields = [](auto& archive, const ValidatedRow& row) {
  archive.cells(row.cells);
  archive.field("predicted", row.predicted);
  archive.nullable_range("interval", row.interval);
  archive.field("error", row.error());
};

constexpr auto summary_fields = [](auto& archive, const Validation& validation) {
  archive.field("rows", std::uint64_t{validation.summary.rows});
  archive.field("median", validation.summary.median);
  archive.field("mean", validation.summary.mean);
  archive.field("bias", validation.summary.bias);
  archive.nullable("coverage", validation.coverage);
};

constexpr auto term_fields = [](auto& archive, const ValidatedTerm& term) {
  archive.field("term", term.term);
  archive.field("factor", term.factor);
  archive.field("before", term.before);
  archive.field("after", term.after);
};

constexpr auto refit_fields = [](auto& archive, const ValidatedRefit& refit) {
  archive.field("device", refit.device);
  archive.field("rows", std::uint64_t{refit.rows});
  archive.field("networks", std::uint64_t{refit.networks});
  archive.field("before", refit.before);
  archive.field("after", refit.after);
  archive.field("becomes", refit.name);
  archive.field("yaml", refit.yaml);
};

constexpr auto validation_fields = [](auto& archive, const Validation& validation) {
  archive.constant("schema", "convoy.validate/1");
  archive.list("rows", validation.rows, row_fields);
  archive.object("summary", validation, summary_fields);
  archive.list("terms", validation.terms, term_fields);
  archive.list("refits", validation.refits, refit_fields);
};

}  // namespace

void write_validation(const Validation& validation, std::ostream& out) {
  JsonWriter json(out);
  FieldWriter archive(json);
  json.begin_object();
  validation_fields(archive, validation);
  json.end_object();
  json.raw("\n");
}

std::string validation_schema_text() { return schema_text<Validation>(validation_fields); }

std::vector<std::string> write_validation_files(const Validation& validation, const std::string& folder) {
  std::vector<std::string> files;
  const auto write = [&](const std::string& name, const auto& content) {
    const std::filesystem::path file = std::filesystem::path(folder) / name;
    std::error_code failed;
    std::filesystem::create_directories(file.parent_path(), failed);
    std::ofstream out(file);
    content(out);
    if (failed || !out.flush()) throw InputError({file.string(), 0, 0}, "cannot be written");
    files.push_back(file.string());
  };
  write("validation.json", [&](std::ostream& out) { write_validation(validation, out); });
  write("validation.html", [&](std::ostream& out) { write_page(validation, out); });
  for (const ValidatedRefit& refit : validation.refits)
    if (refit.helps())
      write("convoy/catalog/devices/" + refit.name + ".yaml", [&](std::ostream& out) { out << refit.yaml; });
  return files;
}

}  // namespace convoy::studies
