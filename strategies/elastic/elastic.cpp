// SPDX-License-Identifier: MIT
#include "strategies/elastic/elastic.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/data_parallel/all_reduce.h"
#include "strategies/elastic/elastic_shares.h"
#include "strategies/elastic/reconfigure.h"
#include "topologies/first_devices.h"

namespace convoy {
namespace {

struct ScheduleEntry {
  std::int64_t at_step;
  std::uint32_t devices;
  SourcePos pos;
};

struct ElasticOptions {
  std::unique_ptr<Strategy> inner;
  std::vector<ScheduleEntry> schedule;
  bool restarts;
  bool uniform;
  std::optional<std::int64_t> micro_batch;
  RestartTimes times;
};

class Elastic : public Strategy {
 public:
  explicit Elastic(ElasticOptions options) : options_(std::move(options)) {}

  std::string label() const override {
    constexpr std::size_t listed = 6;
    std::string devices;
    for (std::size_t i = 0; i < std::min(listed, options_.schedule.size()); ++i)
      devices += fmt::format("{}{}", i ? "-" : "", options_.schedule[i].devices);
    if (options_.schedule.size() > listed) devices += "-...";
    return fmt::format("elastic {}, {}, {}", devices, options_.restarts ? "restart" : "overlapped",
                       options_.uniform ? "uniform" : "coarse");
  }

  std::string_view refuses_recomputation() const override { return options_.inner->refuses_recomputation(); }

  Plan steady_plan(const StrategyInput& input) const override { return std::move(phases(input).back().plan); }

  std::vector<RunPhase> phases(const StrategyInput& input) const override {
    if (!input.batch.global)
      throw InputError(input.batch.pos,
                       "training: elastic needs global_batch, which stays as it is when devices come and go; "
                       "found batch_per_device");
    const std::int64_t micro_batch = micro_batch_of(input);
    std::vector<RunPhase> phases;
    for (const ScheduleEntry& entry : options_.schedule) {
      RunPhase& phase = phases.emplace_back();
      check(entry, input);
      phase.at_step = entry.at_step;
      phase.devices = entry.devices;
      const DealtBatch dealt =
          (options_.uniform ? deal_uniform : deal_coarse)(*input.batch.global, entry.devices, micro_batch);
      for (const std::vector<std::int64_t>& parts : dealt) {
        std::int64_t images = 0;
        for (const std::int64_t part : parts) images += part;
        phase.images.push_back(images);
      }
      BatchSpec batch = input.batch;
      batch.dealt = dealt;
      phase.plan = options_.inner->plan(
          {input.graph, first_devices(input.machine, entry.devices), input.cost, std::move(batch)});
      if (phases.size() > 1) phase.change = change(input, phases[phases.size() - 2].devices, entry.devices);
    }
    return phases;
  }

 private:
  static void check(const ScheduleEntry& entry, const StrategyInput& input) {
    if (entry.devices > input.machine.devices.size())
      throw InputError(entry.pos,
                       fmt::format("strategy.schedule: {} devices from step {} on, but the cluster "
                                   "has {}",
                                   entry.devices, entry.at_step, input.machine.devices.size()));
    if (*input.batch.global < entry.devices)
      throw InputError(input.batch.pos,
                       fmt::format("training: a global batch of {} leaves some of {} devices without an "
                                   "image; at least {} is needed",
                                   *input.batch.global, entry.devices, entry.devices));
  }

  /// uniform: a bound, what memory allows unless given. coarse: the one for which the job was set up on its
  /// first devices, so that it stays what it is later.
  std::int64_t micro_batch_of(const StrategyInput& input) const {
    if (options_.micro_batch) return *options_.micro_batch;
    const std::int64_t global = *input.batch.global;
    std::int64_t most = global;
    for (const DeviceType& type : input.machine.device_types)
      most = std::min(most, std::max<std::int64_t>(1, largest_micro_batch(input.graph, type)));
    if (options_.uniform) return most;
    const std::int64_t first = options_.schedule.front().devices;
    return std::min(most, (global + first - 1) / first);
  }

  Reconfiguration change(const StrategyInput& input, std::uint32_t from, std::uint32_t to) const {
    if (from == to) return {};
    if (options_.restarts) return restart(options_.times, input.graph, to);
    return overlapped(options_.times, input, first_devices(input.machine, std::max(from, to)), from, to);
  }

  ElasticOptions options_;
};

std::unique_ptr<Strategy> read_inner(YamlMap map) {
  map.choice("kind", {"data_parallel"});
  map.choice("sync", {"all_reduce"});
  for (const char* key : {"micro_batches", "shares"})
    if (map.has(key))
      map.fail(key, "elastic shares the batch out itself; see strategy.balance and strategy.micro_batch");
  if (map.has("zero")) map.fail("zero", "elastic moves whole states when devices come and go; leave it out");
  std::unique_ptr<Strategy> inner = read_all_reduce(map);
  map.finish();
  return inner;
}

std::vector<ScheduleEntry> read_schedule(YamlMap& map) {
  constexpr std::int64_t most_devices = 1'000'000;
  std::vector<ScheduleEntry> schedule;
  for (YamlMap& row : map.maps("schedule")) {
    ScheduleEntry entry{row.integer("at_step", 0),
                        static_cast<std::uint32_t>(row.integer("devices", 1, most_devices)),
                        row.pos("devices")};
    if (schedule.empty() && entry.at_step != 0)
      row.fail("at_step", fmt::format("the first entry must be for step 0, found {}", entry.at_step));
    if (!schedule.empty() && entry.at_step <= schedule.back().at_step)
      row.fail("at_step", fmt::format("steps must ascend; {} does not come after {}", entry.at_step,
                                      schedule.back().at_step));
    row.finish();
    schedule.push_back(std::move(entry));
  }
  if (schedule.empty())
    map.fail("schedule", "expected a list such as [{at_step: 0, devices: 4}], found an empty list");
  return schedule;
}

}  // namespace

std::unique_ptr<Strategy> read_elastic(YamlMap& map) {
  ElasticOptions options{};
  options.inner = read_inner(map.map("inner"));
  options.schedule = read_schedule(map);
  options.restarts = map.choice_or("reconfigure", {"overlapped", "restart"}, 0) == 1;
  options.uniform = map.choice_or("balance", {"uniform", "coarse"}, 0) == 0;
  if (map.find("micro_batch")) options.micro_batch = map.integer("micro_batch", 1, 1'000'000'000);
  const YamlNode none = [] {
    YamlNode node;
    node.kind = YamlNode::Kind::mapping;
    return node;
  }();
  YamlMap times = map.find("times") ? map.map("times") : YamlMap(none, "strategy.times");
  options.times = read_restart_times(times);
  times.finish();
  return std::make_unique<Elastic>(std::move(options));
}

}  // namespace convoy
