// SPDX-License-Identifier: MIT
// Batches that are published as having fitted or not, with the predictions for them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/costs/residuals.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"
#include "topologies/device.h"

namespace convoy::inline studies {
namespace {

/// A row of results/published/largest_batches.csv with one of its two batches.
struct PublishedBatch {
  std::string device, model, precision, software, layout, optimizer, source;
  double batch = 0;
  bool ran = false;
};

std::vector<PublishedBatch> read_batches() {
  const std::vector<std::string> columns{"device",    "model", "precision", "software", "layout",
                                         "optimizer", "ran",   "failed",    "source",   "note"};
  const CsvTable table(data_path("results/published") + "/largest_batches.csv", columns, columns);
  std::vector<PublishedBatch> batches;
  for (const CsvRow& row : table.rows()) {
    PublishedBatch batch{table.text(row, "device"),   table.text(row, "model"),  table.text(row, "precision"),
                         table.text(row, "software"), table.text(row, "layout"), table.text(row, "optimizer"),
                         table.text(row, "source")};
    for (const bool ran : {true, false}) {
      const char* column = ran ? "ran" : "failed";
      if (!table.find(row, column)) continue;
      batch.batch = table.number(row, column, true);
      batch.ran = ran;
      batches.push_back(batch);
    }
  }
  return batches;
}

/// "efficientnet_b4@320" and "regnet_x_200mf" as values of `--set model`.
std::string model_setting(const std::string& model) {
  const std::size_t at = model.find('@');
  const std::string name = model.substr(0, at);
  const std::string input =
      at == std::string::npos ? "" : fmt::format(", input: [3, {0}, {0}]", model.substr(at + 1));
  return name.ends_with(".yaml")
             ? fmt::format("{{file: \"{}/{}\"{}}}", data_path("results/published"), name, input)
             : fmt::format("{{name: {}{}}}", name, input);
}

double predict_process_mib(const PublishedBatch& batch, Preparer& preparer) {
  const Experiment experiment = Experiment::load(
      data_path("configs/published") + "/memory.yaml",
      {"model=" + model_setting(batch.model), fmt::format("training.batch_per_device={:g}", batch.batch),
       "training.framework=" + batch.software, "training.optimizer=" + batch.optimizer,
       "training.precision=" + batch.precision, "training.layout=" + batch.layout,
       fmt::format("cluster.servers.box.devices=[{{device: {}, count: 1}}]", batch.device)});
  const PreparedRun run = preparer.prepare(experiment.point(0), nullptr);
  return simulate(run, false).result.process_memory_bytes / bytes_a_mib;
}

}  // namespace

double usable_mib(const std::string& device) {
  return load_device(device, {}).usable_memory_bytes / bytes_a_mib;
}

double memory_uncertainty(const std::string& framework) {
  const auto found = std::find(framework_names.begin(), framework_names.end(), framework);
  return memory_factor(static_cast<Framework>(found - framework_names.begin()));
}

std::vector<BatchRow> published_batches(std::size_t jobs) {
  const std::vector<PublishedBatch> batches = read_batches();
  Reproduction predicted{"batches", ""};
  std::vector<BatchRow> rows;
  for (const PublishedBatch& batch : batches) {
    rows.push_back({batch.device, batch.model,
                    fmt::format("batch {:g}, {} {}", batch.batch, batch.precision, batch.layout),
                    batch.software, batch.source, batch.ran, 0, usable_mib(batch.device),
                    memory_uncertainty(batch.software)});
    predicted.rows.emplace_back().published = rows.back().usable_mib;
  }
  predict_rows(predicted, jobs, [&](std::size_t i, Preparer& preparer) {
    return Prediction(predict_process_mib(batches[i], preparer));
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].process_mib = predicted.rows[i].predicted;
  return rows;
}

BatchCount count_batches(const std::vector<BatchRow>& batches, const std::string& software, bool ran) {
  BatchCount count;
  for (const BatchRow& row : batches) {
    if (row.software != software || row.ran != ran) continue;
    ++count.rows;
    ++(row.fits() ? (row.sure() ? count.fit : count.may_fit)
                  : (row.sure() ? count.do_not_fit : count.may_not_fit));
  }
  return count;
}

std::vector<std::string> batch_software(const std::vector<BatchRow>& batches) {
  std::set<std::string> names;
  for (const BatchRow& row : batches) names.insert(row.software);
  return {names.begin(), names.end()};
}

}  // namespace convoy::studies
