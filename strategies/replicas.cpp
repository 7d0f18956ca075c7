// SPDX-License-Identifier: MIT
#include "strategies/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/quantity.h"

namespace convoy::inline strategies {
namespace {

std::vector<std::int64_t> shares_by_speed(const StrategyInput& input, std::int64_t global) {
  const std::vector<Device>& devices = input.machine.devices;
  const double equal = static_cast<double>(global) / static_cast<double>(devices.size());
  std::map<std::tuple<std::uint32_t, double, std::uint32_t>, double> known;  // by what a step depends on
  std::vector<double> speed;
  for (const Device& device : devices) {
    const auto [it, fresh] =
        known.try_emplace({device.type, device.speed, devices_of_host(input.machine, device)});
    if (fresh) it->second = 1.0 / step_time_s(input.graph, equal, input.cost, input.machine, device);
    speed.push_back(it->second);
  }
  const double total = std::accumulate(speed.begin(), speed.end(), 0.0);

  std::vector<std::int64_t> images;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t given = 0;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const double exact = static_cast<double>(global) * speed[d] / total;
    images.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(exact))));
    given += images.back();
    remainders.emplace_back(exact - static_cast<double>(images.back()), d);
  }
  std::stable_sort(remainders.begin(), remainders.end(), [](auto& a, auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; given < global; i = (i + 1) % remainders.size(), ++given)
    ++images[remainders[i].second];
  for (std::size_t i = remainders.size();
       given > global;) {  // the least entitled give back what "at least one" took
    i = i == 0 ? remainders.size() - 1 : i - 1;
    std::int64_t& share = images[remainders[i].second];
    if (share > 1) --share, --given;
  }
  return images;
}

std::vector<ReplicaClass> classes_as_dealt(const StrategyInput& input) {
  std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::size_t> known;
  std::vector<ReplicaClass> classes;
  for (EndpointId d = 0; d < input.machine.devices.size(); ++d) {
    const std::vector<std::int64_t>& parts = (*input.batch.dealt)[d];
    const std::uint32_t type = input.machine.devices[d].type;
    const auto [it, fresh] = known.emplace(std::pair{type, parts}, classes.size());
    if (fresh)
      classes.push_back({type, std::accumulate(parts.begin(), parts.end(), std::int64_t{0}), {}, parts});
    classes[it->second].devices.push_back(d);
  }
  return classes;
}

}  // namespace

std::vector<ReplicaClass> share_batch(const StrategyInput& input, Shares shares) {
  if (input.batch.dealt) return classes_as_dealt(input);
  const auto n = static_cast<std::int64_t>(input.machine.devices.size());
  const std::int64_t global = input.batch.over(n);
  if (global < n)
    throw InputError(input.batch.pos,
                     fmt::format("training: a global batch of {} leaves some of {} devices without an "
                                 "image; at least {} is needed",
                                 global, n, n));
  std::vector<std::int64_t> images;
  if (shares == Shares::equal) {
    images.assign(static_cast<std::size_t>(n), input.batch.divided(n, n, fmt::format("{} equal shares", n),
                                                                   ", or strategy.shares: speed"));
  } else {
    images = shares_by_speed(input, global);
  }
  std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> known;
  std::vector<ReplicaClass> classes;
  for (EndpointId d = 0; d < input.machine.devices.size(); ++d) {
    const std::uint32_t type = input.machine.devices[d].type;
    const auto [it, fresh] = known.emplace(std::pair{type, images[d]}, classes.size());
    if (fresh) classes.push_back({type, images[d], {}, {}});
    classes[it->second].devices.push_back(d);
  }
  return classes;
}

std::optional<StepFloor> floor_of_replicas(const BatchSpec& batch, CostTable& table,
                                           std::int64_t micro_batches, bool updates) {
  const std::int64_t images = batch.over(table.device_count());
  if (images % (table.device_count() * micro_batches) != 0) return std::nullopt;
  const std::int64_t of_micro_batch = images / (table.device_count() * micro_batches);
  double step_s = 0;  // every kind of device has a replica
  for (const CostTable::Passes& passes : table.of_kinds(static_cast<double>(of_micro_batch))) {
    const double both_s = micro_batches == 1
                              ? passes.issued_s
                              : static_cast<double>(micro_batches) * std::max(passes.both_s(), passes.host_s);
    step_s = std::max(step_s, both_s + (updates ? passes.update_s : 0));
  }
  return StepFloor{step_s, images,
                   fmt::format("at least {} a step for computing alone", format_time(step_s))};
}

double micro_batch_images(const StrategyInput& input, const ReplicaClass& replicas,
                          std::int64_t micro_batches) {
  const std::int64_t each = replicas.images / micro_batches;
  if (each * micro_batches == replicas.images) return static_cast<double>(each);
  const auto devices = static_cast<std::int64_t>(input.machine.devices.size());
  if (!input.batch.dealt && replicas.images * devices == input.batch.over(devices))
    input.batch.divided(devices, devices * micro_batches,
                        fmt::format("{} micro-batches on each of {} devices", micro_batches, devices));
  throw InputError(
      input.batch.pos,
      fmt::format("training: a device's share of {} images cannot be divided into {} micro-batches; "
                  "equal shares are divided more easily (strategy.shares: equal)",
                  replicas.images, micro_batches));
}

namespace {

/// Forward and backward of each micro-batch of each step in turn.
/// @param left_out so many micro-batches
std::vector<Pass> passes_of(const StrategyInput& input, const ReplicaClass& replica,
                            std::int64_t micro_batches, std::int64_t left_out, std::int64_t steps) {
  std::vector<double> images(replica.micro_batches.begin(), replica.micro_batches.end());
  if (!input.batch.dealt)
    images.assign(static_cast<std::size_t>(micro_batches - left_out),
                  micro_batch_images(input, replica, micro_batches));
  std::vector<Pass> passes;
  for (std::int64_t step = 0; step < steps; ++step)
    for (std::size_t m = 0; m < images.size(); ++m)
      for (const bool backward : {false, true})
        passes.push_back({backward,
                          step * static_cast<std::int64_t>(images.size()) + static_cast<std::int64_t>(m),
                          images[m],
                          fmt::format("{}{}", steps > 1 ? fmt::format(" of step {}", step) : "",
                                      images.size() > 1 ? fmt::format(" #{}", m) : ""),
                          backward && m + 1 == images.size()});
  return passes;
}

}  // namespace

void check_plan_size(const StrategyInput& input, std::int64_t micro_batches, std::int64_t steps) {
  const auto operations = static_cast<std::int64_t>(input.graph.operations.size());
  if (steps > 1 && steps * micro_batches * operations > most_planned_operations)
    throw InputError(
        input.batch.pos,
        fmt::format("training: {} steps of {} micro-batches of {} operations each; at most {} operations are "
                    "planned: use a sync_every of at most {}",
                    steps, micro_batches, operations, most_planned_operations,
                    most_planned_operations / (micro_batches * operations)));
  if (micro_batches * operations > most_planned_operations)
    throw InputError(
        input.batch.pos,
        fmt::format("training: {} micro-batches of {} operations each; at most {} operations are "
                    "planned: use at most {} micro_batches",
                    micro_batches, operations, most_planned_operations,
                    most_planned_operations / operations));
}

StagedPasses replica_passes(const StrategyInput& input, const std::vector<ReplicaClass>& replicas,
                            std::int64_t micro_batches, const std::optional<Averaging>& averaging,
                            bool may_leave_out) {
  const std::int64_t steps = averaging ? averaging->period(input.machine) : 1;
  check_plan_size(input, micro_batches, steps);
  StagedPasses passes;
  passes.averaging = averaging;
  passes.shares_tasks = true;
  passes.meaning = input.meaning;
  if (may_leave_out && !averaging && !input.meaning && !input.batch.dealt)
    passes.repeats = repeated_passes(micro_batches, 1, 1, 1);
  const auto left_out = passes.repeats ? static_cast<std::int64_t>(passes.repeats->left_out) : 0;
  StagedLayers& network = passes.stages.emplace_back();
  for (const ReplicaClass& replica : replicas) {
    passes.images += static_cast<double>(replica.images) * static_cast<double>(replica.devices.size());
    network.slots.push_back({fmt::format("worker with {} images", replica.images), replica.devices,
                             passes_of(input, replica, micro_batches, left_out, steps)});
  }
  return passes;
}

Annotation annotate_replicas(const StrategyInput& input, const GradientSync& sync,
                             const std::vector<ReplicaClass>& replicas, std::int64_t micro_batches,
                             const std::optional<Averaging>& averaging) {
  return {WholeLayers{replica_passes(input, replicas, micro_batches, averaging, sync.zero < 2), std::nullopt,
                      input.network},
          sync};
}

}  // namespace convoy::strategies
