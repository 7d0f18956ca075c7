// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <map>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/costs/residuals.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// A measured point of results/published/scaling.yaml, scaling_transports.yaml or real_images.yaml.
struct ScalingRow {
  std::string table, experiment, model, source;
  std::string file;  ///< in results/published/models, if the network is not the zoo's of that name
  std::vector<std::string> settings;  ///< settings of the series, in addition to the experiment's
  bool fitted = false;
  std::int64_t batch = 0, nodes = 0, devices_per_node = 0;
  std::optional<std::int64_t> servers;
  double images_per_s = 0;
  std::optional<double> synthetic_one;  ///< images/s of one device without an input pipeline

  bool anchor() const { return devices() == 1 && !synthetic_one; }

  std::int64_t devices() const { return nodes * devices_per_node; }
  /// As a value of `--set`.
  std::string network() const {
    if (file.empty()) return model;
    return fmt::format("{{file: \"{}/models/{}\"}}", data_path("results/published"), file);
  }
  std::string series() const { return fmt::format("{} {} {} {}", table, experiment, model, batch); }
  std::string setup() const {
    return fmt::format("{} x {}, batch {}{}", nodes, devices_per_node, batch,
                       variant.empty() ? "" : ", " + variant);
  }
  std::string variant;  ///< what distinguishes a series from the others of its table
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
      row.file = series.text_or("file", "");
      row.batch = series.integer("batch", 1);
      row.variant = series.text_or("variant", "");
      row.synthetic_one.reset();
      if (series.has("synthetic_one")) row.synthetic_one = series.number("synthetic_one", 1e-6);
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
Prediction predict(const ScalingRow& row, double images_per_s_of_one, Preparer& preparer) {
  std::vector<std::string> settings{
      "model=" + row.network(), fmt::format("training.batch_per_device={}", row.batch),
      fmt::format("training.anchor={{images_per_s: {}, batch: {}}}", images_per_s_of_one, row.batch),
      fmt::format("cluster.nodes={}", row.nodes),
      fmt::format("cluster.devices_per_node={}", row.devices_per_node)};
  settings.insert(settings.end(), row.settings.begin(), row.settings.end());
  if (row.servers) settings.push_back(fmt::format("strategy.servers={}", *row.servers));
  const Experiment experiment =
      Experiment::load(fmt::format("{}/{}.yaml", data_path("configs/published"), row.experiment), settings);
  const PreparedRun run = preparer.prepare(experiment.point(0), nullptr);
  const RunResult result = simulate(run, false).result;
  Prediction prediction(result.throughput_images_per_s);
  if (result.interval)
    prediction.interval = {result.interval->throughput_images_per_s[0],
                           result.interval->throughput_images_per_s[1]};
  if (const std::optional<CommKind> kind = comm_kind(run.machine)) {
    prediction.kind = comm_kind_name(*kind);
    prediction.transport = run.machine.transport.name;
  }
  return prediction;
}

/// Summaries by role, by source, by library and protocol, and by link.
std::vector<ErrorSummary> summaries_of(const std::vector<ReproducedRow>& rows) {
  ErrorGroups groups;
  for (const ReproducedRow& row : rows) {
    if (row.anchor) continue;
    const std::string role = row.fitted ? "fit" : "test";
    groups[{role, "", "all"}].push_back(row.error);
    groups[{role, "source", row.table.substr(0, row.table.find(','))}].push_back(row.error);
    if (row.kind.empty()) continue;
    groups[{role, "link", row.kind}].push_back(row.error);
    groups[{role, "transport", row.transport}].push_back(row.error);
  }
  return summaries_by_group(std::move(groups));
}

/// Rows of a file of results/published, each predicted from the row of one device of its series, or of its
/// table and model if the series has none; or from the series' figure of one device with synthetic images.
Reproduction predict_scaling(Reproduction result, const char* file, std::size_t jobs) {
  const std::vector<ScalingRow> rows = read_scaling(file);
  std::map<std::string, double> of_one;
  for (const ScalingRow& row : rows)
    if (row.anchor()) of_one.emplace(row.series(), row.images_per_s);
  for (const ScalingRow& row : rows)
    result.rows.push_back({row.table, row.model, row.setup(), row.images_per_s, 0, 0, row.anchor(),
                           row.source, row.fitted && !row.anchor(), row.experiment});
  predict_rows(result, jobs, [&](std::size_t i, Preparer& preparer) {
    const ScalingRow& row = rows[i];
    return predict(row, row.synthetic_one ? *row.synthetic_one : of_one.at(row.series()), preparer);
  });
  result.summaries = summaries_of(result.rows);
  return result;
}

}  // namespace

Reproduction reproduce_scaling(std::size_t jobs) {
  return predict_scaling({"scaling", "Training throughput of several devices, from that of one"},
                         "scaling.yaml", jobs);
}

Reproduction reproduce_transports(std::size_t jobs) {
  return predict_scaling({"transports", "Several devices over TCP, RDMA, NVLink and PCIe, from one"},
                         "scaling_transports.yaml", jobs);
}

Reproduction reproduce_real_images(std::size_t jobs) {
  return predict_scaling(
      {"real-images", "Training on images from files, from one device without an input pipeline"},
      "real_images.yaml", jobs);
}

}  // namespace convoy::studies
