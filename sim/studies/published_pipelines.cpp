// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// A measured pipeline of results/published/pipelines.yaml.
struct PipelineRow {
  std::int64_t devices, batch, micro_batches;
  std::string begins;  ///< as YAML
  double images_per_s;
};

PipelineRow read_row(YamlMap& map) {
  PipelineRow row{map.integer("devices", 1), map.integer("batch", 1), map.integer("micro_batches", 1),
                  to_flow(map.node("begins")), map.number("images_per_s", 1e-6)};
  map.finish();
  return row;
}

RunResult predict(const std::string& experiment, const PipelineRow& row, double anchor_images_per_s,
                  std::int64_t anchor_batch) {
  const std::vector<std::string> settings{
      fmt::format("training.global_batch={}", row.batch),
      fmt::format("training.anchor={{images_per_s: {}, batch: {}}}", anchor_images_per_s, anchor_batch),
      fmt::format("cluster.devices_per_node={}", row.devices),
      fmt::format("strategy.micro_batches={}", row.micro_batches),
      fmt::format("strategy.begins={}", row.begins)};
  const Experiment loaded =
      Experiment::load(fmt::format("{}/{}.yaml", data_path("configs/published"), experiment), settings);
  return simulate(Preparer(loaded).prepare(0), false).result;
}

void add_table(YamlMap& table, Reproduction& result) {
  const std::string name = table.text("name"), experiment = table.text("experiment");
  const std::string source = table.text("source");
  table.text("note");
  YamlMap plain = table.map("unpartitioned");
  const std::int64_t batch = plain.integer("batch", 1);
  double anchor = plain.number("images_per_s", 1e-6);
  plain.finish();
  const auto add = [&](std::string setup, double published, double predicted, bool is_anchor) {
    result.rows.push_back({name,
                           "resnet101",
                           std::move(setup),
                           published,
                           predicted,
                           predicted / published - 1,
                           is_anchor,
                           source,
                           {}});
  };
  add(fmt::format("plain, batch {}", batch), anchor, anchor, true);
  for (YamlMap& map : table.maps("partitions")) {
    const PipelineRow row = read_row(map);
    const RunResult run = predict(experiment, row, anchor, batch);
    const double predicted = run.throughput_images_per_s;
    add(fmt::format("{} partition{}, {} parts, batch {}", row.devices, row.devices == 1 ? "" : "s",
                    row.micro_batches, row.batch),
        row.images_per_s, predicted, false);
    if (run.interval) result.rows.back().interval = run.interval->throughput_images_per_s;
    // One device alone is as fast as its operations, so this scales the prediction exactly to its figure.
    if (row.devices == 1) anchor *= row.images_per_s / predicted;
  }
  table.finish();
}

}  // namespace

Reproduction reproduce_pipelines() {
  Reproduction result{"pipelines", "Training throughput of pipelines, from that of one partition"};
  const YamlNode file = load_yaml(data_path("results/published") + "/pipelines.yaml");
  YamlMap root(file, "");
  for (YamlMap& table : root.maps("tables")) add_table(table, result);
  root.finish();
  return result;
}

}  // namespace convoy::studies
