// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// A row of results/published/detection.csv or loaders.csv; the model, how it was trained and the strategy are
/// YAML.
struct MeasuredTraining {
  std::string table, system, model, training, strategy, server, device, source;
  double nodes = 0, devices_per_node = 0, batch = 0, images_per_s = 0, vcpus = 0;
  bool fitted = false;
};

std::vector<MeasuredTraining> read_trainings(const std::string& file) {
  const std::vector<std::string> needed{
      "table", "system", "model", "training", "nodes", "devices_per_node", "batch", "images_per_s", "source"};
  std::vector<std::string> columns = needed;
  columns.insert(columns.end(), {"server", "device", "vcpus", "strategy", "role"});
  const CsvTable table(fmt::format("{}/{}", data_path("results/published"), file), columns, needed);
  std::vector<MeasuredTraining> rows;
  for (const CsvRow& row : table.rows()) {
    MeasuredTraining measured{table.text(row, "table"),    table.text(row, "system"),
                              table.text(row, "model"),    table.text(row, "training"),
                              table.text(row, "strategy"), table.text(row, "server"),
                              table.text(row, "device"),   table.text(row, "source")};
    if (measured.strategy.empty()) measured.strategy = "sync: all_reduce, algorithm: auto";
    measured.nodes = table.number(row, "nodes", true);
    measured.devices_per_node = table.number(row, "devices_per_node", true);
    measured.batch = table.number(row, "batch", true);
    measured.images_per_s = table.number(row, "images_per_s", true);
    if (!table.text(row, "vcpus").empty()) measured.vcpus = table.number(row, "vcpus", true);
    measured.fitted = table.text(row, "role") == "fit";
    rows.push_back(std::move(measured));
  }
  return rows;
}

/// PCIe 4.0 and 5.0 as of the catalogue's servers with 8 RTX A6000 and 8 H100.
std::string cluster_of(const MeasuredTraining& row) {
  if (!row.server.empty())
    return fmt::format("{{server: {}, nodes: {}, devices_per_node: {}}}", row.server, row.nodes,
                       row.devices_per_node);
  return fmt::format(
      "{{name: pcie, nodes: [{{name: n, count: {}, server: pcie}}], fabric: {{kind: switch, bandwidth: "
      "100Gbps, "
      "latency: 14us}}, servers: {{pcie: {{devices: [{{device: {}, count: {}}}]{}, interconnect: {{kind: "
      "pcie, "
      "bandwidth: {}GB/s, efficiency: 76.2%, latency: 5.7us}}}}}}}}",
      row.nodes, row.device, row.devices_per_node, row.vcpus > 0 ? fmt::format(", vcpus: {}", row.vcpus) : "",
      row.device.starts_with("h100") ? 63 : 31.5);
}

Prediction throughput_of(const MeasuredTraining& row, const std::string& file, Preparer& preparer) {
  const std::string text = fmt::format(
      "{{experiment: published, model: {}, training: {{global_batch: {}, {}}}, cluster: {}, strategy: "
      "{{kind: data_parallel, {}}}}}",
      row.model, row.batch, row.training, cluster_of(row), row.strategy);
  const PreparedRun run = preparer.prepare(read_point(parse_yaml(text, file)), nullptr);
  const RunResult result = simulate(run, false).result;
  Prediction prediction(result.throughput_images_per_s);
  if (result.interval) {
    const auto& [low, high] = result.interval->throughput_images_per_s;
    prediction.interval = {low, high};
  }
  return prediction;
}

Reproduction reproduce_trainings(Reproduction result, const std::string& file, std::size_t jobs) {
  const std::vector<MeasuredTraining> rows = read_trainings(file);
  for (const MeasuredTraining& row : rows)
    result.rows.push_back({row.table, row.system,
                           fmt::format("{} x {} of {}, batch {}", row.nodes, row.devices_per_node,
                                       row.server.empty() ? row.device : row.server, row.batch),
                           row.images_per_s, 0, 0, false, row.source, row.fitted});
  predict_rows(result, jobs,
               [&](std::size_t i, Preparer& preparer) { return throughput_of(rows[i], file, preparer); });
  return result;
}

}  // namespace

Reproduction reproduce_detection(std::size_t jobs) {
  return reproduce_trainings({"detection", "Training throughput of networks of detection, and of 3D U-Net"},
                             "detection.csv", jobs);
}

Reproduction reproduce_loaders(std::size_t jobs) {
  return reproduce_trainings({"loaders", "Training throughput with a loader, of which nothing was measured"},
                             "loaders.csv", jobs);
}

}  // namespace convoy::studies
