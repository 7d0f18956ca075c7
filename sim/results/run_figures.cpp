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

/// The value with this key: `value`, where there was none.
template <class Value>
const Value& kept_by(std::unordered_map<std::string, Value>& all, std::string key, const Value& value) {
  return all.try_emplace(std::move(key), value).first->second;
}

}  // namespace

const std::vector<std::string>& FiguresPool::kept(const std::vector<std::string>& texts) {
  std::string key;
  for (const std::string& text : texts) (key += text) += '\0';
  return kept_by(lists_, std::move(key), texts);
}

const SoftwareResult& FiguresPool::kept(const SoftwareResult& software) {
  const auto known = std::ranges::find(software_, software);
  return known == software_.end() ? software_.emplace_back(software) : *known;
}

const Coordinate& FiguresPool::kept(const Coordinate& coordinate) {
  return kept_by(coordinates_, coordinate.first + '\0' + to_yaml(coordinate.second), coordinate);
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
  std::optional<RunFigures::Interval> interval;
  if (run.interval)
    interval = {run.interval->level, run.interval->step_time_s, run.interval->throughput_images_per_s};
  return {.id = run.id,
          .point = kept(run.point),
          .model = kept(run.model),
          .cluster = kept(run.cluster),
          .strategy = kept(run.strategy),
          .servers = kept(run.servers),
          .device_type = kept(run.device_type),
          .algorithms = kept(run.algorithms),
          .warnings = kept(run.warnings),
          .software = kept(run.software),
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
          .interval = interval,
          .bottleneck = {kept(run.bottleneck.kind), kept(run.bottleneck.name), run.bottleneck.utilization,
                         kept(run.bottleneck.text)},
          .fullest_memory = fullest ? &kept(fullest->memory) : nullptr,
          .fits = run.fits,
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
