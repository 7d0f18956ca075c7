// SPDX-License-Identifier: MIT
#include "sim/studies/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/calibration/calibration.h"
#include "sim/results/json_writer.h"
#include "sim/run/experiment.h"
#include "sim/run/simulate.h"
#include "sim/run/workers.h"

namespace convoy {
namespace {

/// A measured point of results/published/scaling.yaml or scaling_transports.yaml.
struct ScalingRow {
  std::string table, experiment, model, source;
  std::vector<std::string> settings;  ///< of the series, on top of the experiment's
  bool fitted = false;
  std::int64_t batch = 0, nodes = 0, devices_per_node = 0;
  std::optional<std::int64_t> servers;
  double images_per_s = 0;

  std::int64_t devices() const { return nodes * devices_per_node; }
  std::string series() const { return fmt::format("{} {} {} {}", table, experiment, model, batch); }
  std::string setup() const {
    return fmt::format("{} x {}, batch {}{}", nodes, devices_per_node, batch,
                       variant.empty() ? "" : ", " + variant);
  }
  std::string variant;  ///< what tells a series from the others of its table
};

/// "4x8": 4 nodes of 8 devices.
std::int64_t part_of_setup(const YamlMap& map, const std::string& setup, bool devices) {
  const std::size_t cross = setup.find('x');
  const std::string text = devices ? setup.substr(cross + 1) : setup.substr(0, cross);
  const std::optional<double> number = parse_number(text);
  if (cross == std::string::npos || !number || *number < 1)
    map.fail(setup, "expected NODESxDEVICES, such as 4x8");
  return static_cast<std::int64_t>(*number);
}

/// {"cluster.fabric.bandwidth": 10Gbps} as settings.
void read_settings(YamlMap& map, std::vector<std::string>& settings) {
  if (!map.find("settings")) return;
  YamlMap values = map.map("settings");
  for (const std::string& path : values.keys())
    settings.push_back(fmt::format("{}={}", path, values.text(path)));
}

std::vector<ScalingRow> read_scaling(const char* name) {
  std::vector<ScalingRow> rows;
  const YamlNode file = load_yaml(fmt::format("{}/{}", data_path("results/published"), name));
  YamlMap root(file, "");
  for (YamlMap& table : root.maps("tables")) {
    ScalingRow row;
    row.table = table.text("name");
    row.experiment = table.text("experiment");
    row.source = table.text("source");
    table.text("note");
    row.fitted = table.choice_or("role", {"test", "fit"}, 0) == 1;
    std::vector<std::string> of_table;
    read_settings(table, of_table);
    for (YamlMap& series : table.maps("series")) {
      row.model = series.text("model");
      row.batch = series.integer("batch", 1);
      row.variant = series.text_or("variant", "");
      row.settings = of_table;
      read_settings(series, row.settings);
      YamlMap points = series.map("images_per_s");
      for (const std::string& setup : points.keys()) {
        row.nodes = part_of_setup(points, setup, false);
        row.devices_per_node = part_of_setup(points, setup, true);
        row.images_per_s = points.number(setup, 1e-6);
        row.servers.reset();
        if (series.has("servers") && series.map("servers").has(setup))
          row.servers = series.map("servers").integer(setup, 1);
        rows.push_back(row);
      }
      series.find("servers");
      series.finish();
    }
    table.finish();
  }
  root.finish();
  return rows;
}

/// The throughput that convoy predicts for a row from that of one device.
double predict(const ScalingRow& row, double images_per_s_of_one) {
  std::vector<std::string> settings{
      fmt::format("model={}", row.model), fmt::format("training.batch_per_device={}", row.batch),
      fmt::format("training.anchor={{images_per_s: {}, batch: {}}}", images_per_s_of_one, row.batch),
      fmt::format("cluster.nodes={}", row.nodes),
      fmt::format("cluster.devices_per_node={}", row.devices_per_node)};
  settings.insert(settings.end(), row.settings.begin(), row.settings.end());
  if (row.servers) settings.push_back(fmt::format("strategy.servers={}", *row.servers));
  const Experiment experiment =
      Experiment::load(fmt::format("{}/{}.yaml", data_path("configs/published"), row.experiment), settings);
  return simulate(Preparer(experiment).prepare(0), false).result.throughput_images_per_s;
}

template <class Counts>
double mean_of(const std::vector<ReproducedRow>& rows, Counts counts) {
  double sum = 0;
  std::size_t count = 0;
  for (const ReproducedRow& row : rows)
    if (counts(row)) sum += std::abs(row.error), ++count;
  return count ? sum / static_cast<double>(count) : 0;
}

}  // namespace

double Reproduction::mean_error() const {
  return mean_of(rows, [](const ReproducedRow& row) { return !row.anchor && !row.fitted; });
}

double Reproduction::median_error() const {
  std::vector<double> errors;
  for (const ReproducedRow& row : rows)
    if (!row.anchor && !row.fitted) errors.push_back(std::abs(row.error));
  return summary_of(std::move(errors)).median;
}

bool Reproduction::passed() const {
  return mean_error() <= mean_tolerance && (!worst_tolerance || worst_error() <= *worst_tolerance) &&
         (!median_tolerance || median_error() <= *median_tolerance);
}

double Reproduction::fitted_error() const {
  return mean_of(rows, [](const ReproducedRow& row) { return row.fitted; });
}

double Reproduction::worst_error() const {
  double worst = 0;
  for (const ReproducedRow& row : rows)
    if (!row.anchor && !row.fitted && row.disputed.empty()) worst = std::max(worst, std::abs(row.error));
  return worst;
}

ErrorSummary summary_of(std::vector<double> errors) {
  ErrorSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  const double count = static_cast<double>(errors.size());
  for (const double error : errors) {
    summary.bias += error / count;
    summary.mean += std::abs(error) / count;
  }
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.median = errors[errors.size() / 2];
  summary.ninety = errors[errors.size() * 9 / 10];
  return summary;
}

double KernelReproduction::worst() const {
  double worst = 0;
  for (const KernelAccuracy& row : rows)
    if (row.kind == "all") worst = std::max(worst, row.test_error);
  return worst;
}

KernelReproduction reproduce_kernels() { return {0.20, kernel_cross_validation()}; }

void predict_rows(Reproduction& reproduction, std::size_t jobs,
                  const std::function<double(std::size_t)>& predict) {
  std::vector<ReproducedRow>& rows = reproduction.rows;
  std::string failure;
  const FirstHalf predict_row = [&](std::size_t i) -> SecondHalf {
    return [&predict, i] { return shortest(predict(i)); };
  };
  run_in_workers(rows.size(), jobs, predict_row, [&](std::size_t i, WorkerAnswer answer) {
    if (answer.kind != WorkerAnswer::Kind::done)
      failure = answer.bytes;
    else
      rows[i].predicted = std::stod(answer.bytes);
    rows[i].error = rows[i].predicted / rows[i].published - 1;
  });
  if (!failure.empty()) throw std::runtime_error(failure);
}

namespace {

/// Rows of a file of results/published, each from the row of one device of its series, or of its table and
/// model where the series has none.
Reproduction predict_scaling(Reproduction result, const char* file, std::size_t jobs) {
  const std::vector<ScalingRow> rows = read_scaling(file);
  std::map<std::string, double> of_one;
  for (const ScalingRow& row : rows)
    if (row.devices() == 1) of_one.emplace(row.series(), row.images_per_s);
  for (const ScalingRow& row : rows)
    result.rows.push_back({row.table,
                           row.model,
                           row.setup(),
                           row.images_per_s,
                           0,
                           0,
                           row.devices() == 1,
                           row.source,
                           {},
                           row.fitted && row.devices() > 1});
  predict_rows(result, jobs, [&](std::size_t i) { return predict(rows[i], of_one.at(rows[i].series())); });
  return result;
}

}  // namespace

Reproduction reproduce_scaling(std::size_t jobs) {
  return predict_scaling(
      {"scaling", "Training throughput of several devices, from that of one", 0.05, 0.20, {}}, "scaling.yaml",
      jobs);
}

Reproduction reproduce_transports(std::size_t jobs) {
  return predict_scaling(
      {"transports", "Several devices over TCP, RDMA, NVLink and PCIe, from one", 0.085, 0.85, {}},
      "scaling_transports.yaml", jobs);
}

}  // namespace convoy
