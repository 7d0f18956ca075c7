// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/run/experiment.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy {
namespace {

constexpr double bytes_a_mib = 1024 * 1024;

/// A measured peak of results/published/memory.yaml.
struct MemoryRow {
  std::string table, name, model, source, framework, optimizer, disputed;
  bool with_reserve = false;  ///< of the whole process; else of the framework's tensors alone
  bool fitted = false;
  std::int64_t batch = 0;
  double mib = 0;
};

/// The model as a value of `--set`: one of the zoo, or a file of results/published/models and its parameters.
std::string model_of(YamlMap& series) {
  std::string model =
      series.has("model")
          ? "{name: " + series.text("model")
          : fmt::format("{{file: \"{}/{}\"", data_path("results/published/models"), series.text("file"));
  if (series.has("parameters")) {
    YamlMap parameters = series.map("parameters");
    for (const std::string& key : parameters.keys())
      model += fmt::format(", {}: {}", key, to_flow(parameters.node(key)));
  }
  return model + "}";
}

void read_table(YamlMap& table, std::vector<MemoryRow>& rows) {
  MemoryRow row;
  row.table = table.text("name");
  row.source = table.text("source");
  table.text("note");
  row.framework = table.text("framework");
  row.optimizer = table.text("optimizer");
  row.with_reserve = table.choice("measured", {"tensors", "process"}) == 1;
  for (YamlMap& series : table.maps("series")) {
    row.name = series.text("name");
    row.model = model_of(series);
    row.fitted = series.flag_or("fitted", false);
    row.disputed = series.text_or("disputed", "");
    YamlMap points = series.map("mib");
    for (const std::string& batch : points.keys()) {
      const std::optional<double> images = parse_number(batch);
      if (!images || *images < 1) points.fail(batch, "expected a number of images");
      row.batch = static_cast<std::int64_t>(*images);
      row.mib = points.number(batch, 1);
      rows.push_back(row);
    }
    series.finish();
  }
  table.finish();
}

std::vector<MemoryRow> read_rows() {
  std::vector<MemoryRow> rows;
  const YamlNode file = load_yaml(data_path("results/published") + "/memory.yaml");
  YamlMap root(file, "");
  for (YamlMap& table : root.maps("tables")) read_table(table, rows);
  root.finish();
  return rows;
}

double predict_mib(const MemoryRow& row) {
  const Experiment experiment =
      Experiment::load(data_path("configs/published") + "/memory.yaml",
                       {"model=" + row.model, fmt::format("training.batch_per_device={}", row.batch),
                        "training.framework=" + row.framework, "training.optimizer=" + row.optimizer});
  const DeviceResult device = simulate(Preparer(experiment).prepare(0), false).result.per_device.front();
  const double reserved = device.memory[static_cast<std::size_t>(MemoryClass::reserved)];
  return (device.peak_memory_bytes - (row.with_reserve ? 0 : reserved)) / bytes_a_mib;
}

}  // namespace

Reproduction reproduce_memory(std::size_t jobs) {
  Reproduction result{"memory", "Peak memory of training on one device, MiB", 0.10, 0.20, {}, "mib"};
  const std::vector<MemoryRow> rows = read_rows();
  for (const MemoryRow& row : rows)
    result.rows.push_back({row.table, row.name, fmt::format("batch {}", row.batch), row.mib, 0, 0, false,
                           row.source, row.disputed, row.fitted});
  predict_rows(result, jobs, [&](std::size_t i) { return predict_mib(rows[i]); });
  return result;
}

}  // namespace convoy
