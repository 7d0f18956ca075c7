// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <sstream>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy {
namespace {

constexpr std::int64_t imagenet_images = 1'281'167;

/// A stretch of a run: so many epochs on images of so many pixels a side.
struct TrainingPhase {
  double epochs;
  std::int64_t pixels, batch_per_device;
};

/// A row of results/published/dawnbench.csv.
struct DawnbenchEntry {
  std::string name, framework, precision, server, source;
  std::int64_t nodes = 0;
  double usd_per_hour = 0, hours = 0;
  std::vector<TrainingPhase> phases;
};

/// "6:128:256 7:128:512". @throws InputError
std::vector<TrainingPhase> read_phases(const CsvCell& cell) {
  std::vector<TrainingPhase> phases;
  std::istringstream words(cell.text);
  for (std::string word; words >> word;) {
    std::istringstream parts(word);
    TrainingPhase phase{};
    char first = 0, second = 0;
    parts >> phase.epochs >> first >> phase.pixels >> second >> phase.batch_per_device;
    if (!parts || !parts.eof() || first != ':' || second != ':')
      throw InputError(cell.pos, fmt::format("phases: expected epochs:pixels:images, found '{}'", word));
    phases.push_back(phase);
  }
  return phases;
}

std::vector<DawnbenchEntry> read_entries() {
  const std::vector<std::string> columns{"entry",  "framework",    "precision", "server", "nodes",
                                         "phases", "usd_per_hour", "hours",     "source"};
  const CsvTable table(data_path("results/published") + "/dawnbench.csv", columns, columns);
  std::vector<DawnbenchEntry> entries;
  for (const CsvRow& row : table.rows()) {
    DawnbenchEntry& entry = entries.emplace_back();
    entry.name = table.text(row, "entry");
    entry.framework = table.text(row, "framework");
    entry.precision = table.text(row, "precision");
    entry.server = table.text(row, "server");
    entry.source = table.text(row, "source");
    entry.nodes = static_cast<std::int64_t>(table.number(row, "nodes", true));
    entry.usd_per_hour = table.number(row, "usd_per_hour", true);
    entry.hours = table.number(row, "hours", true);
    entry.phases = read_phases(*table.find(row, "phases"));
  }
  return entries;
}

/// What `convoy run` says an epoch of the phase costs at the entry's price, times its epochs. Training alone,
/// on images that are there.
double cost_usd(const DawnbenchEntry& entry, const TrainingPhase& phase) {
  const std::string text = fmt::format(
      "{{experiment: dawnbench, model: {{name: resnet50, input: [3, {0}, {0}]}}, training: "
      "{{batch_per_device: "
      "{1}, precision: {2}, framework: {3}, optimizer: momentum, dataset: {{samples: {4}}}}}, cluster: "
      "{{server: "
      "{{base: {5}, price: {6}USD/h}}, nodes: {7}}}, strategy: {{kind: data_parallel, sync: all_reduce, "
      "algorithm: auto}}}}",
      phase.pixels, phase.batch_per_device, entry.precision, entry.framework, imagenet_images, entry.server,
      entry.usd_per_hour / static_cast<double>(entry.nodes), entry.nodes);
  Preparer preparer;
  const PreparedRun run = preparer.prepare(read_point(parse_yaml(text, "dawnbench.csv")), nullptr);
  return phase.epochs * simulate(run, false).result.cost_usd_per_epoch.value();
}

}  // namespace

Reproduction reproduce_dawnbench(std::size_t jobs) {
  Reproduction result{"dawnbench", "Cost of ResNet-50 to 93 % top-5 on ImageNet, DAWNBench, USD", "usd"};
  const std::vector<DawnbenchEntry> entries = read_entries();
  for (const DawnbenchEntry& entry : entries)
    result.rows.push_back({entry.framework + " " + entry.precision, entry.name,
                           fmt::format("{} of {}, {} phases", entry.nodes, entry.server, entry.phases.size()),
                           entry.usd_per_hour * entry.hours, 0, 0, false, entry.source, false});
  predict_rows(result, jobs, [&](std::size_t i) {
    double usd = 0;
    for (const TrainingPhase& phase : entries[i].phases) usd += cost_usd(entries[i], phase);
    return usd;
  });
  return result;
}

}  // namespace convoy
