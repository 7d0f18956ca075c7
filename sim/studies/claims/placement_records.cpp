// SPDX-License-Identifier: MIT
#include "sim/studies/claims/placement_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/plan/ledger.h"
#include "sim/run/preparer.h"
#include "sim/run/simulate.h"
#include "sim/studies/claims/configs.h"
#include "strategies/pardnn/operation_dag.h"
#include "strategies/partition/paging.h"
#include "strategies/partition/report.h"

namespace convoy::inline studies {
namespace {

PreparedRun prepare(const std::string& config, long parts, long batch) {
  return Preparer(load_config(config, {fmt::format("sweep={{strategy.parts: [{}]}}", parts),
                                       fmt::format("training.global_batch={}", batch)}))
      .prepare(0);
}

/// Peak of the fullest device divided by its memory.
double fullest_share(const PreparedRun& run) {
  double share = 0;
  for (const Role& role : run.plan.roles) {
    const DeviceType& type = run.machine.device_types[run.machine.devices[role.members[0]].type];
    share = std::max(share, peak_memory(role).bytes / type.memory_bytes);
  }
  return share;
}

/// The largest of the batches that were tried and fit, with its plan; the least one where none fits.
struct LargestBatch {
  long batch;
  bool fits;
  PreparedRun run;
};

/// Among `low`, ..., `high` images, to a precision of `steps` halvings.
LargestBatch largest_batch(const std::string& config, long parts, long low, long high, int steps) {
  LargestBatch largest{low, true, prepare(config, parts, low)};
  if (fullest_share(largest.run) > 1) {
    largest.fits = false;
    return largest;
  }
  for (int step = 0; step < steps && high - largest.batch > 1; ++step) {
    const long middle = largest.batch + (high - largest.batch) / 2;
    PreparedRun run = prepare(config, parts, middle);
    if (fullest_share(run) <= 1)
      largest = {middle, true, std::move(run)};
    else
      high = middle;
  }
  return largest;
}

std::vector<long> whole_numbers(YamlMap& map, std::string_view key) {
  std::vector<long> result;
  for (const YamlNode& item : map.node(key).items) result.push_back(read_integer(item, map.path_of(key), 1));
  return result;
}

std::vector<std::string> names(YamlMap& map, std::string_view key) {
  std::vector<std::string> result;
  for (const YamlNode& item : map.node(key).items) result.push_back(read_text(item, map.path_of(key)));
  return result;
}

/// Images/s of one device that pages what does not fit over the link to its host.
double paged_images_per_s(const std::string& config, long batch, double host_bandwidth_Bps) {
  const PreparedRun run = prepare(config, 1, batch);
  const OperationDag graph = operation_dag({*run.graph, run.machine, run.cost, {}}, run.plan.images, 1);
  const double memory_bytes = run.machine.device_types[run.machine.devices[0].type].memory_bytes;
  return 1e6 * static_cast<double>(batch) /
         run_paged(graph.dag, memory_bytes, host_bandwidth_Bps / 1e6).makespan_us;
}

/// Of a batch that does not fit: what its figures are, without throughput, and 0 for the batch.
Record batch_record(const std::string& config, long parts, const LargestBatch& largest,
                    double host_bandwidth_Bps) {
  Record record;
  const RunResult result = simulate(largest.run, false).result;
  record.numbers = {{"parts", static_cast<double>(parts)},
                    {"batch", largest.fits ? static_cast<double>(largest.batch) : 0},
                    {"paged_images_per_s", paged_images_per_s(config, largest.batch, host_bandwidth_Bps)},
                    {"fullest_share", result.peak_memory_bytes / result.device_memory_bytes},
                    {"throughput_images_per_s", largest.fits ? result.throughput_images_per_s : 0}};
  return record;
}

}  // namespace

std::vector<Record> largest_batch_records(YamlMap& map, std::size_t jobs) {
  constexpr long most = 4096;
  constexpr int halvings_alone = 12, halvings = 3;
  const std::string config = map.text("largest_batches");
  const std::vector<long> parts = whole_numbers(map, "parts");
  const double host_bandwidth_Bps = map.quantity("host_bandwidth", Dimension::bandwidth, true);
  const LargestBatch alone = largest_batch(config, 1, 1, most, halvings_alone);
  const long least = alone.batch;
  std::vector<Record> records{batch_record(config, 1, alone, host_bandwidth_Bps)};
  for (const std::string& answer : answers_of_workers(parts.size(), jobs, [&](std::size_t i) {
         const long p = parts[i];
         const LargestBatch largest = largest_batch(config, p, p * least, 2 * p * least, halvings);
         return to_json({batch_record(config, p, largest, host_bandwidth_Bps)});
       }))
    records.push_back(records_from_json(answer).front());
  return records;
}

std::vector<Record> makespan_records(YamlMap& map, std::size_t jobs) {
  const std::string config = map.text("makespans");
  const std::vector<std::string> models = names(map, "models"), methods = names(map, "methods");
  const std::vector<long> parts = whole_numbers(map, "parts");
  constexpr long batch = 32;
  const auto compare = [&](const std::string& model, long count) {
    const PreparedRun run = Preparer(load_config(config, {fmt::format("model={}", model),
                                                          fmt::format("training.global_batch={}", batch),
                                                          "sweep={strategy.parts: [1]}"}))
                                .prepare(0);
    const OperationDag graph = operation_dag({*run.graph, run.machine, run.cost, {}}, run.plan.images, 1);
    const auto p = static_cast<std::uint32_t>(count);
    const PartitionTask task{graph.dag, p, part_link(run.machine, p), std::nullopt, 1, true};
    ReadyOrder judge(task.dag, task.link, task.parts);
    std::vector<Record> records;
    for (const std::string& method : methods) {
      Record& record = records.emplace_back();
      const PartitionAnswer answer = find_partition_method(method)->run(task);
      const double ready_us = judge.makespan_us(answer.placement);
      record.texts = {{"model", model}, {"method", method}};
      record.numbers = {{"parts", static_cast<double>(count)},
                        {"makespan_us", ready_us},
                        {"schedule_makespan_us", answer.schedule ? answer.schedule->makespan_us : ready_us}};
    }
    return records;
  };
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(models.size() * parts.size(), jobs, [&](std::size_t i) {
         return to_json(compare(models[i / parts.size()], parts[i % parts.size()]));
       }))
    for (Record& record : records_from_json(answer)) records.push_back(std::move(record));
  return records;
}

}  // namespace convoy::studies
