// SPDX-License-Identifier: MIT
#include "strategies/placed_replicas.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

/// `inner`: what the devices do that have the same part in several replicas.
void read_placed_inner(YamlMap& map, PlacedReplicas& options) {
  options.nested = map.find("inner") != nullptr;
  if (!options.nested) return;
  if (options.replicas == 1)
    map.fail("inner",
             "says how replicas sum their gradients, and there is one: give replicas, or leave it out");
  YamlMap inner = map.map("inner");
  inner.choice("kind", {"data_parallel"});
  inner.choice("sync", {"all_reduce"});
  if (inner.has("micro_batches"))
    inner.fail("micro_batches", "the replicas have them: write strategy.micro_batches");
  if (inner.has("shares")) inner.fail("shares", "replicas get equal shares of the batch; leave it out");
  options.sync = read_gradient_sync(inner);
  inner.finish();
  if (options.sync.zero >= 2)
    inner.fail(
        "zero",
        fmt::format("{} frees gradients after each pass over all layers, and here passes take turns; use "
                    "zero: 0 or 1",
                    options.sync.zero));
}

}  // namespace

std::string PlacedReplicas::label() const {
  std::string text = micro_batches > 1 ? fmt::format(", {} micro-batches", micro_batches) : "";
  if (replicas > 1) text += fmt::format(", {} replicas", replicas);
  if (nested) text += fmt::format(" ({})", label_of(sync));
  return text;
}

std::uint32_t PlacedReplicas::devices_a_replica(std::size_t cluster, std::optional<std::uint32_t> given,
                                                const SourcePos& given_pos) const {
  const auto all = static_cast<std::uint32_t>(cluster);
  if (given.value_or(0) > all)
    throw InputError(given_pos,
                     fmt::format("strategy.parts: {} parts need a device each, and the cluster has "
                                 "{}; at most {} here",
                                 *given, all, all));
  if (!given && all % replicas != 0)
    throw InputError(replicas_pos,
                     fmt::format("strategy.replicas: {} replicas cannot have equally many of {} "
                                 "devices; use a number that divides them",
                                 replicas, all));
  const std::uint32_t devices = given.value_or(all / replicas);
  if (replicas > 1 && std::uint64_t{devices} * replicas > all)
    throw InputError(replicas_pos, fmt::format("strategy.replicas: {} replicas of {} devices take {}; the "
                                               "cluster has {}",
                                               replicas, devices, std::uint64_t{devices} * replicas, all));
  return devices;
}

std::int64_t PlacedReplicas::images(const BatchSpec& batch, std::uint32_t devices) const {
  const std::int64_t parts = std::int64_t{replicas} * micro_batches;
  const std::string of_replicas = replicas > 1 ? fmt::format("{} replicas", replicas) : "";
  const std::string of_micro_batches = fmt::format("{} micro-batches", micro_batches);
  return batch.divided(std::int64_t{devices} * replicas, parts,
                       micro_batches == 1 && replicas > 1 ? of_replicas
                       : replicas == 1                    ? of_micro_batches
                                       : fmt::format("{} of {}", of_replicas, of_micro_batches));
}

std::optional<std::int64_t> PlacedReplicas::images_if_whole(const BatchSpec& batch,
                                                            std::int64_t devices) const {
  const std::int64_t parts = std::int64_t{replicas} * micro_batches;
  const std::int64_t images = batch.over(devices * replicas);
  return devices > 0 && images % parts == 0 ? std::optional(images / parts) : std::nullopt;
}

std::optional<StepFloor> PlacedReplicas::floor(
    const BatchSpec& batch, CostTable& table, std::optional<std::uint32_t> given, std::string_view operations,
    const std::function<double(double, std::int64_t)>& chain_s) const {
  const std::int64_t devices = given.value_or(table.device_count() / replicas);
  const std::optional<std::int64_t> images = images_if_whole(batch, devices);
  if (!images) return std::nullopt;
  const double step_s = chain_s(static_cast<double>(*images), devices);
  return StepFloor{
      step_s, batch.over(devices * replicas),
      fmt::format("at least {} a step for {} that wait for each other", format_time(step_s), operations)};
}

Annotation annotate_undivided(const StrategyInput& input, const PlacedReplicas& placed) {
  const std::int64_t images = placed.images(input.batch, 1) * placed.micro_batches;
  std::map<std::uint32_t, ReplicaClass> by_type;
  for (EndpointId device = 0; device < placed.replicas; ++device) {
    const std::uint32_t type = input.machine.devices[device].type;
    by_type.try_emplace(type, ReplicaClass{type, images, {}, {}}).first->second.devices.push_back(device);
  }
  std::vector<ReplicaClass> replicas;
  for (auto& [type, of_type] : by_type) replicas.push_back(std::move(of_type));
  return annotate_replicas(input, placed.sync, replicas, placed.micro_batches);
}

const Keys<PlacedReplicas>& placed_replica_keys() {
  using Options = PlacedReplicas;
  static const Keys<Options> keys{
      integer_key<Options>("micro_batches", 1, Options::most_micro_batches,
                           "parts of a replica's share of the batch, which are under way at a time and "
                           "accumulated before the update",
                           &Options::micro_batches),
      integer_key<Options>("replicas", 1, 1'000'000,
                           "the same work several times side by side, each on devices and images of its own; "
                           "those that have the same part of it sum their gradients",
                           &Options::replicas)
          .at(&Options::replicas_pos),
      custom_key<Options>("inner", "",
                          forms::section("strategy", "{kind: data_parallel, sync: all_reduce, ...}"),
                          "how replicas sum their gradients: buckets, overlap, compression, and ZeRO's stage "
                          "1; left out, one all-reduce after the backward pass",
                          &read_placed_inner)};
  return keys;
}

}  // namespace convoy::strategies
