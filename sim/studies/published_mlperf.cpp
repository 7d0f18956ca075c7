// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/planning/convergence.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

constexpr double seconds_a_minute = 60;

/// A row of results/published/mlperf.csv.
struct Submission {
  std::string system, server, source;
  double nodes = 0, devices_per_node = 0, batch_per_device = 0, epochs = 0, minutes = 0;
  double global_batch() const { return nodes * devices_per_node * batch_per_device; }
};

std::vector<Submission> read_submissions() {
  const std::vector<std::string> columns{"system",           "server", "nodes",   "devices_per_node",
                                         "batch_per_device", "epochs", "minutes", "source"};
  const CsvTable table(data_path("results/published") + "/mlperf.csv", columns, columns);
  std::vector<Submission> rows;
  for (const CsvRow& row : table.rows()) {
    Submission submission{table.text(row, "system"), table.text(row, "server"), table.text(row, "source")};
    submission.nodes = table.number(row, "nodes", true);
    submission.devices_per_node = table.number(row, "devices_per_node", true);
    submission.batch_per_device = table.number(row, "batch_per_device", true);
    submission.epochs = table.number(row, "epochs", true);
    submission.minutes = table.number(row, "minutes", true);
    rows.push_back(std::move(submission));
  }
  return rows;
}

/// NVIDIA's MXNet container, which all of them ran, trains in half precision with channels last. Only
/// training: no evaluation, no start of the run, and images as fast as the devices take them.
Prediction minutes_of_training(const Submission& row, double images, Preparer& preparer) {
  const std::string text = fmt::format(
      "{{experiment: mlperf, model: resnet50, training: {{batch_per_device: {}, precision: fp16, framework: "
      "mxnet, layout: nhwc, "
      "optimizer: momentum}}, cluster: {{server: {}, nodes: {}, devices_per_node: {}}}, strategy: {{kind: "
      "data_parallel, sync: all_reduce, algorithm: auto}}}}",
      row.batch_per_device, row.server, row.nodes, row.devices_per_node);
  const PreparedRun run = preparer.prepare(read_point(parse_yaml(text, "mlperf.csv")), nullptr);
  const RunResult result = simulate(run, false).result;
  const auto minutes_at = [&](double images_per_s) { return images / images_per_s / seconds_a_minute; };
  Prediction prediction(minutes_at(result.throughput_images_per_s));
  if (result.interval) {
    const auto& [low, high] = result.interval->throughput_images_per_s;
    prediction.interval = {minutes_at(high), minutes_at(low)};
  }
  return prediction;
}

}  // namespace

Reproduction reproduce_mlperf(std::size_t jobs) {
  Reproduction result{"mlperf", "Time to train ResNet-50 to 75.9 %, MLPerf Training, minutes", "minutes"};
  const ConvergenceTable goal = load_goal("resnet50-imagenet-75.9", {});
  const std::vector<Submission> rows = read_submissions();
  std::vector<double> epochs;
  for (const bool given : {true, false})
    for (const Submission& row : rows) {
      const std::optional<EpochsNeeded> needed = goal.at(row.global_batch(), true);
      epochs.push_back(given ? row.epochs : needed->epochs);
      result.rows.push_back(
          {given ? "epochs as submitted" : std::string(table_of_epochs), row.system,
           fmt::format("{} x {} of {}, batch {}, {:.4g} epochs", row.nodes, row.devices_per_node, row.server,
                       row.batch_per_device, epochs.back()),
           row.minutes, 0, 0, false, row.source, false});
    }
  predict_rows(result, jobs, [&](std::size_t i, Preparer& preparer) {
    return minutes_of_training(rows[i % rows.size()], epochs[i] * *goal.samples, preparer);
  });
  return result;
}

}  // namespace convoy::studies
