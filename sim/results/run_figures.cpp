// SPDX-License-Identifier: MIT
#include "sim/results/run_figures.h"

#include <algorithm>

namespace convoy::inline results {
namespace {

const DeviceResult* fullest_device(const RunResult& run) {
  const auto fullest =
      std::ranges::find(run.per_device, run.peak_memory_bytes, &DeviceResult::peak_memory_bytes);
  return fullest == run.per_device.end() ? nullptr : &*fullest;
}

}  // namespace

const RunWords& FiguresPool::words_of(const RunResult& run) {
  const SoftwareResult& software = run.software;
  std::string key;
  for (const std::string* text :
       {&run.model, &run.cluster, &run.strategy, &run.servers, &run.device_type, &run.bottleneck.kind,
        &run.bottleneck.name, &software.framework, &software.execution, &software.layout, &software.precision,
        &software.update, &software.transport, &software.launches, &software.input})
    (key += *text) += '\0';
  key += software.transport_assumed ? "assumed" : "";
  for (const std::vector<std::string>* list : {&run.algorithms, &run.warnings}) {
    for (const std::string& text : *list) (key += text) += '\0';
    key += '\1';
  }
  const double level = run.interval ? run.interval->level : 0;
  key += std::to_string(level);
  return words_
      .try_emplace(std::move(key), RunWords{run.model, run.cluster, run.strategy, run.servers,
                                            run.device_type, run.algorithms, run.warnings, software,
                                            run.bottleneck.kind, run.bottleneck.name, level})
      .first->second;
}

const Coordinate& FiguresPool::kept(const Coordinate& coordinate) {
  return coordinates_.try_emplace(coordinate.first + '\0' + to_yaml(coordinate.second), coordinate)
      .first->second;
}

const std::array<double, memory_class_count>& FiguresPool::kept(
    const std::array<double, memory_class_count>& memory) {
  return *memories_.insert(memory).first;
}

PooledPoint FiguresPool::kept(const std::vector<Coordinate>& point) {
  if (points_.empty() || points_.back().capacity() - points_.back().size() < point.size())
    points_.emplace_back().reserve(std::max(block_places, point.size()));
  std::vector<const Coordinate*>& block = points_.back();
  const std::size_t begin = block.size();
  for (const Coordinate& coordinate : point) block.push_back(&kept(coordinate));
  return PooledPoint({block.data() + begin, point.size()});
}

RunFigures FiguresPool::figures_of(const RunResult& run) {
  const DeviceResult* const fullest = fullest_device(run);
  const IntervalResult interval = run.interval.value_or(IntervalResult{});
  return {.id = run.id,
          .point = kept(run.point),
          .words = words_of(run),
          .bottleneck_sentence = kept(run.bottleneck.text),
          .bottleneck_utilization = run.bottleneck.utilization,
          .devices = run.devices,
          .global_batch = run.global_batch,
          .step_time_s = run.step_time_s,
          .throughput_images_per_s = run.throughput_images_per_s,
          .epoch_time_s = run.epoch_time_s,
          .cost_usd_per_epoch = run.cost_usd_per_epoch,
          .bubble_fraction = run.bubble_fraction,
          .mean_staleness = run.staleness ? std::optional(run.staleness->mean) : std::nullopt,
          .energy_j = run.energy_j,
          .compute_s = run.compute_s,
          .exposed_comm_s = run.exposed_comm_s,
          .idle_s = run.idle_s,
          .issue_wait_s = run.issue_wait_s,
          .comm_bytes = run.comm_bytes,
          .load_imbalance = run.load_imbalance,
          .peak_memory_bytes = run.peak_memory_bytes,
          .device_memory_bytes = run.device_memory_bytes,
          .process_memory_bytes = run.process_memory_bytes,
          .step_interval_s = interval.step_time_s,
          .throughput_interval_images_per_s = interval.throughput_images_per_s,
          .fullest_memory = fullest ? &kept(fullest->memory) : nullptr,
          .fits = run.fits,
          .has_interval = run.interval.has_value(),
          .has_phases = run.phases.size() > 1,
          .has_changes = !run.reconfigurations.empty(),
          .has_stages = !run.stages.empty(),
          .has_partition = run.partition.has_value(),
          .has_search = run.search.has_value(),
          .has_layouts = !run.layouts.empty(),
          .has_variability = run.variability.has_value(),
          .has_counterfactuals = !run.counterfactuals.empty(),
          .has_learning = !run.learning.empty()};
}

}  // namespace convoy::results
