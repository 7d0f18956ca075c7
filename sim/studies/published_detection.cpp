// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// A row of results/published/detection.csv; the model and how it was trained are YAML.
struct MeasuredDetector {
  std::string table, system, model, training, server, device, source;
  double nodes = 0, devices_per_node = 0, batch = 0, images_per_s = 0;
};

std::vector<MeasuredDetector> read_detectors() {
  const std::vector<std::string> needed{
      "table", "system", "model", "training", "nodes", "devices_per_node", "batch", "images_per_s", "source"};
  std::vector<std::string> columns = needed;
  columns.insert(columns.end(), {"server", "device"});
  const CsvTable table(data_path("results/published") + "/detection.csv", columns, needed);
  std::vector<MeasuredDetector> rows;
  for (const CsvRow& row : table.rows()) {
    MeasuredDetector measured{table.text(row, "table"),  table.text(row, "system"),
                              table.text(row, "model"),  table.text(row, "training"),
                              table.text(row, "server"), table.text(row, "device"),
                              table.text(row, "source")};
    measured.nodes = table.number(row, "nodes", true);
    measured.devices_per_node = table.number(row, "devices_per_node", true);
    measured.batch = table.number(row, "batch", true);
    measured.images_per_s = table.number(row, "images_per_s", true);
    rows.push_back(std::move(measured));
  }
  return rows;
}

/// PCIe 4.0 and 5.0 as of the catalogue's servers with 8 RTX A6000 and 8 H100.
std::string cluster_of_detector(const MeasuredDetector& row) {
  if (!row.server.empty())
    return fmt::format("{{server: {}, nodes: {}, devices_per_node: {}}}", row.server, row.nodes,
                       row.devices_per_node);
  return fmt::format(
      "{{name: pcie, nodes: [{{name: n, count: {}, server: pcie}}], fabric: {{kind: switch, bandwidth: "
      "100Gbps, "
      "latency: 14us}}, servers: {{pcie: {{devices: [{{device: {}, count: {}}}], interconnect: {{kind: pcie, "
      "bandwidth: {}GB/s, efficiency: 76.2%, latency: 5.7us}}}}}}}}",
      row.nodes, row.device, row.devices_per_node, row.device.starts_with("h100") ? 63 : 31.5);
}

Prediction detector_throughput(const MeasuredDetector& row, Preparer& preparer) {
  const std::string text = fmt::format(
      "{{experiment: detection, model: {}, training: {{global_batch: {}, {}}}, cluster: {}, strategy: "
      "{{kind: data_parallel, sync: all_reduce, algorithm: auto}}}}",
      row.model, row.batch, row.training, cluster_of_detector(row));
  const PreparedRun run = preparer.prepare(read_point(parse_yaml(text, "detection.csv")), nullptr);
  const RunResult result = simulate(run, false).result;
  Prediction prediction(result.throughput_images_per_s);
  if (result.interval) {
    const auto& [low, high] = result.interval->throughput_images_per_s;
    prediction.interval = {low, high};
  }
  return prediction;
}

}  // namespace

Reproduction reproduce_detection(std::size_t jobs) {
  Reproduction result{"detection", "Training throughput of networks of detection, and of 3D U-Net"};
  const std::vector<MeasuredDetector> rows = read_detectors();
  for (const MeasuredDetector& row : rows)
    result.rows.push_back({row.table, row.system,
                           fmt::format("{} x {} of {}, batch {}", row.nodes, row.devices_per_node,
                                       row.server.empty() ? row.device : row.server, row.batch),
                           row.images_per_s, 0, 0, false, row.source, false});
  predict_rows(result, jobs,
               [&](std::size_t i, Preparer& preparer) { return detector_throughput(rows[i], preparer); });
  return result;
}

}  // namespace convoy::studies
