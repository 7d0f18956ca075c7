// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "sim/base/csv.h"
#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "sim/costs/input_pipeline.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

constexpr std::int64_t imagenet_images = 1'281'167;

/// A stretch of a run: this many epochs on images with this many pixels a side, cropped from files whose
/// shorter side has `file_side` pixels.
struct TrainingPhase {
  double epochs;
  std::int64_t pixels, batch_per_device, file_side;
};

/// A row of results/published/dawnbench.csv. `training`, `input` and `strategy` are keys of an experiment.
struct DawnbenchEntry {
  std::string name, training, input, strategy, server, source;
  std::int64_t nodes = 0;
  double evaluated_images = 0, usd_per_hour = 0, hours = 0;
  std::vector<TrainingPhase> phases;
};

/// "6:128:256:160 7:128:512:160". @throws InputError
std::vector<TrainingPhase> read_phases(const CsvCell& cell) {
  std::vector<TrainingPhase> phases;
  std::istringstream words(cell.text);
  for (std::string word; words >> word;) {
    std::istringstream parts(word);
    TrainingPhase phase{};
    char first = 0, second = 0, third = 0;
    parts >> phase.epochs >> first >> phase.pixels >> second >> phase.batch_per_device >> third >>
        phase.file_side;
    if (!parts || !parts.eof() || first != ':' || second != ':' || third != ':')
      throw InputError(cell.pos,
                       fmt::format("phases: expected epochs:pixels:images:file side, found '{}'", word));
    phases.push_back(phase);
  }
  return phases;
}

std::vector<DawnbenchEntry> read_entries() {
  const std::vector<std::string> columns{"entry",  "training", "input",  "strategy",     "evaluated_images",
                                         "server", "nodes",    "phases", "usd_per_hour", "hours",
                                         "source"};
  const CsvTable table(data_path("results/published") + "/dawnbench.csv", columns, columns);
  std::vector<DawnbenchEntry> entries;
  for (const CsvRow& row : table.rows()) {
    DawnbenchEntry& entry = entries.emplace_back();
    entry.name = table.text(row, "entry");
    entry.training = table.text(row, "training");
    entry.input = table.text(row, "input");
    entry.strategy = table.text(row, "strategy");
    entry.server = table.text(row, "server");
    entry.source = table.text(row, "source");
    entry.nodes = static_cast<std::int64_t>(table.number(row, "nodes", true));
    entry.evaluated_images = table.number(row, "evaluated_images", false);
    entry.usd_per_hour = table.number(row, "usd_per_hour", true);
    entry.hours = table.number(row, "hours", true);
    entry.phases = read_phases(*table.find(row, "phases"));
  }
  return entries;
}

/// The pixels of the files: ImageNet's images are 500 x 400 on average, and keep their aspect ratio when they
/// are made smaller.
double file_pixels(const TrainingPhase& phase) {
  const double smaller = static_cast<double>(phase.file_side) / 400;
  return imagenet_image_pixels * smaller * smaller;
}

/// `training.input` of a phase.
std::string input_text(const DawnbenchEntry& entry, const TrainingPhase& phase) {
  if (entry.input.empty()) return "synthetic";
  return fmt::format("{{{}, image_pixels: {}}}", entry.input, file_pixels(phase));
}

PreparedRun prepare_phase(const DawnbenchEntry& entry, const TrainingPhase& phase, Preparer& preparer) {
  const std::string text = fmt::format(
      "{{experiment: dawnbench, model: {{name: resnet50, input: [3, {0}, {0}]}}, training: "
      "{{batch_per_device: {1}, {2}, "
      "input: {3}, optimizer: momentum}}, cluster: {{server: {4}, nodes: {5}}}, strategy: {{kind: "
      "data_parallel, sync: "
      "all_reduce, algorithm: auto{6}{7}}}}}",
      phase.pixels, phase.batch_per_device, entry.training, input_text(entry, phase), entry.server,
      entry.nodes, entry.strategy.empty() ? "" : ", ", entry.strategy);
  return preparer.prepare(read_point(parse_yaml(text, "dawnbench.csv")), nullptr);
}

/// Seconds that the devices of a host need for the evaluation after an epoch: for forward passes alone, which
/// are a third of the work of a training step, or for preparing its images if that takes longer.
double evaluation_s(const DawnbenchEntry& entry, const TrainingPhase& phase, const PreparedRun& run,
                    const RunResult& result) {
  const double host_images = entry.evaluated_images / static_cast<double>(entry.nodes);
  const std::uint32_t devices = run.machine.hosts.front().device_count;
  const double forward_s =
      result.compute_s / 3 / static_cast<double>(phase.batch_per_device) * host_images / devices;
  const InputSpec input = read_input(parse_yaml(input_text(entry, phase), "dawnbench.csv"), "training.input");
  if (input.synthetic) return forward_s;
  const InputRate rate = input_rate(input, run.machine.host_types[run.machine.hosts.front().type], devices);
  return std::max(forward_s, host_images / rate.images_per_s);
}

/// USD of a phase at the entry's price: as predicted, and at the ends of the 80 % interval of its steps.
std::array<double, 3> costs_usd(const DawnbenchEntry& entry, const TrainingPhase& phase, Preparer& preparer) {
  const PreparedRun run = prepare_phase(entry, phase, preparer);
  const RunResult result = simulate(run, false).result;
  const double evaluating_s = evaluation_s(entry, phase, run, result);
  const auto usd_at = [&](double images_per_s) {
    return phase.epochs * (imagenet_images / images_per_s + evaluating_s) / 3600 * entry.usd_per_hour;
  };
  const IntervalResult::Range range =
      result.interval ? result.interval->throughput_images_per_s
                      : IntervalResult::Range{result.throughput_images_per_s, result.throughput_images_per_s};
  return {usd_at(result.throughput_images_per_s), usd_at(range[1]), usd_at(range[0])};
}

}  // namespace

Reproduction reproduce_dawnbench(std::size_t jobs) {
  Reproduction result{"dawnbench", "Cost of ResNet-50 to 93 % top-5 on ImageNet, DAWNBench, USD", "usd"};
  const std::vector<DawnbenchEntry> entries = read_entries();
  for (const DawnbenchEntry& entry : entries)
    result.rows.push_back({"ResNet-50", entry.name,
                           fmt::format("{} of {}, {} phases", entry.nodes, entry.server, entry.phases.size()),
                           entry.usd_per_hour * entry.hours, 0, 0, false, entry.source, false});
  predict_rows(result, jobs, [&](std::size_t i, Preparer& preparer) {
    // What a machine's steps are off by, they are in all phases.
    std::array<double, 3> usd{};
    for (const TrainingPhase& phase : entries[i].phases) {
      const std::array<double, 3> of_phase = costs_usd(entries[i], phase, preparer);
      for (std::size_t k = 0; k < usd.size(); ++k) usd[k] += of_phase[k];
    }
    Prediction prediction(usd[0]);
    prediction.interval = {usd[1], usd[2]};
    return prediction;
  });
  return result;
}

}  // namespace convoy::studies
