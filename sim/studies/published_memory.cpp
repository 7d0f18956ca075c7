// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <map>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

/// A measured peak of results/published/memory.yaml.
struct MemoryRow {
  std::string table, name, model, source, framework, optimizer, device, precision;
  std::int64_t devices = 1;
  bool process = false;  ///< of the whole process; else of the framework's tensors alone
  bool fitted = false, sets_interval = false;
  std::int64_t batch = 0;
  double mib = 0;
};

/// The model as a value of `--set`: one from the zoo, or a file of results/published/models with its
/// parameters.
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

/// @param series_of by framework, the number of series of processes that have been read: the second, fourth,
/// ... of them set the width of its interval, and the others test it
void read_table(YamlMap& table, std::map<std::string, int>& series_of, std::vector<MemoryRow>& rows) {
  MemoryRow row;
  row.table = table.text("name");
  row.source = table.text("source");
  table.text("note");
  row.framework = table.text("framework");
  row.optimizer = table.text("optimizer");
  row.process = table.choice("measured", {"tensors", "process"}) == 1;
  row.device = table.text("device");
  row.devices = table.integer_or("devices", 1, 1);
  for (YamlMap& series : table.maps("series")) {
    row.name = series.text("name");
    row.model = model_of(series);
    row.precision = series.text_or("precision", "fp32");
    row.fitted = series.flag_or("fitted", false);
    row.sets_interval = row.process && !row.fitted && ++series_of[row.framework] % 2 == 0;
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
  std::map<std::string, int> series_of;
  for (YamlMap& table : root.maps("tables")) read_table(table, series_of, rows);
  root.finish();
  return rows;
}

double predict_mib(const MemoryRow& row, Preparer& preparer) {
  std::vector<std::string> settings{
      "model=" + row.model,
      fmt::format("training.batch_per_device={}", row.batch),
      "training.framework=" + row.framework,
      "training.optimizer=" + row.optimizer,
      "training.precision=" + row.precision,
      fmt::format("cluster.servers.box.devices=[{{device: {}, count: {}}}]", row.device, row.devices)};
  if (row.devices > 1) settings.push_back("strategy={kind: data_parallel, sync: all_reduce}");
  const Experiment experiment = Experiment::load(data_path("configs/published") + "/memory.yaml", settings);
  const RunResult result = simulate(preparer.prepare(experiment.point(0), nullptr), false).result;
  if (row.process) return result.process_memory_bytes / bytes_a_mib;
  const DeviceResult& device = result.per_device.front();
  const double reserved = device.memory[static_cast<std::size_t>(MemoryClass::reserved)];
  return (device.peak_memory_bytes - reserved) / bytes_a_mib;
}

}  // namespace

Reproduction reproduce_memory(std::size_t jobs) {
  Reproduction result{"memory", "Peak memory of training on one device, MiB", "mib"};
  const std::vector<MemoryRow> rows = read_rows();
  for (const MemoryRow& row : rows)
    result.rows.push_back({row.table, row.name, fmt::format("batch {}", row.batch), row.mib, 0, 0, false,
                           row.source, row.fitted});
  predict_rows(result, jobs, [&](std::size_t i, Preparer& preparer) {
    Prediction prediction(predict_mib(rows[i], preparer));
    if (!rows[i].process) return prediction;
    prediction.kind = rows[i].framework;
    const double factor = memory_uncertainty(rows[i].framework);
    prediction.interval = {prediction.value / factor, prediction.value * factor};
    return prediction;
  });
  result.batches = published_batches(jobs);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MemoryRow& row = rows[i];
    result.rows[i].sets_interval = row.sets_interval;
    if (row.process && !row.fitted)
      result.batches.push_back({row.device, row.name, fmt::format("{} x batch {}", row.devices, row.batch),
                                row.framework, row.source, true, result.rows[i].predicted,
                                usable_mib(row.device), memory_uncertainty(row.framework)});
  }
  return result;
}

}  // namespace convoy::studies
