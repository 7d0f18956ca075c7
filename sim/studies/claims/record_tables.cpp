// SPDX-License-Identifier: MIT
#include "sim/studies/claims/record_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sim/base/data_path.h"
#include "sim/run/sweep.h"
#include "sim/studies/claims/configs.h"
#include "sim/studies/claims/kernel_records.h"
#include "sim/studies/claims/monitored_records.h"
#include "sim/studies/claims/network_records.h"
#include "sim/studies/claims/placement_records.h"
#include "sim/studies/claims/training_records.h"
#include "sim/studies/job_study.h"
#include "sim/studies/shared_links.h"

namespace convoy::inline studies {
namespace {

std::vector<std::string> texts(YamlMap& map, std::string_view key) {
  std::vector<std::string> result;
  if (const YamlNode* list = map.find(key))
    for (const YamlNode& item : list->items) result.push_back(read_text(item, map.path_of(key)));
  return result;
}

std::vector<Record> experiment_records(YamlMap& map, std::size_t jobs) {
  const Experiment experiment = load_config(map.text("experiment"), texts(map, "set"));
  const std::vector<RunResult> runs = simulate_sweep(experiment, jobs, map.flag_or("explain", false)).runs;
  std::vector<Record> records = records_of(runs);
  if (map.flag_or("monitor", false)) add_monitored(experiment, runs, records);
  return records;
}

std::vector<Record> point_records(YamlMap& map, std::size_t jobs) {
  const std::string name = map.text("points_of");
  std::vector<std::vector<std::string>> settings;
  for (YamlMap& point : map.maps("points")) {
    std::vector<std::string>& of_point = settings.emplace_back();
    for (const std::string& key : point.keys())
      of_point.push_back(fmt::format("{}={}", key, to_yaml(point.node(key))));
  }
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(settings.size(), jobs, [&](std::size_t i) {
         return to_json(records_of(simulate_sweep(load_config(name, settings[i]), 1).runs));
       }))
    for (Record& record : records_from_json(answer)) records.push_back(std::move(record));
  return records;
}

/// `jobs:` of an experiment with other jobs: those of a workload file in configs.
YamlNode with_workload(const YamlNode& jobs, const std::string& name) {
  YamlNode result = jobs;
  const std::array drawn{"count", "median_length", "spread", "asked", "mean_intervals"};
  std::erase_if(result.entries, [&](const auto& entry) {
    return std::find(drawn.begin(), drawn.end(), entry.first) != drawn.end();
  });
  YamlNode file;
  file.kind = YamlNode::Kind::scalar;
  file.scalar = fmt::format("{}/{}.csv", data_path("configs"), name);
  file.pos = file.key_pos = jobs.pos;
  result.entries.emplace_back("workload", std::move(file));
  return result;
}

/// Queues with the same throughput of jobs.
struct NamedStudy {
  std::string workload;  ///< "" for the experiment's own jobs
  JobStudy study;
};

std::vector<Record> job_records(YamlMap& map, std::size_t jobs) {
  const Experiment experiment = load_config(map.text("jobs_of"), {});
  const YamlNode& node = *experiment.jobs();
  std::vector<NamedStudy> queues;
  for (const std::string& name : texts(map, "workloads"))
    queues.push_back({name, read_job_study(with_workload(node, name))});
  if (queues.empty()) queues.push_back({"", read_job_study(node)});
  const JobKinds kinds = job_kinds(simulate_sweep(experiment, jobs), queues.front().study, node.pos);
  const std::vector<YamlNode>& seeds = map.node("seeds").items;
  std::vector<Record> records;
  const auto answers = answers_of_workers(queues.size() * seeds.size(), jobs, [&](std::size_t i) {
    NamedStudy queue = queues[i / seeds.size()];
    queue.study.seeds = {static_cast<std::uint64_t>(read_integer(seeds[i % seeds.size()], "seeds", 0))};
    std::vector<Record> of_queue = records_of(run_queues(experiment, queue.study, kinds, node.pos));
    for (Record& record : of_queue) record.texts["workload"] = queue.workload;
    return to_json(of_queue);
  });
  for (const std::string& answer : answers)
    for (Record& record : records_from_json(answer)) records.push_back(std::move(record));
  return records;
}

struct Provider {
  const char* key;
  std::vector<Record> (*make)(YamlMap& map, std::size_t jobs);
};
constexpr std::array providers{Provider{"experiment", &experiment_records},
                               Provider{"points_of", &point_records},
                               Provider{"jobs_of", &job_records},
                               Provider{"largest_batches", &largest_batch_records},
                               Provider{"makespans", &makespan_records},
                               Provider{"kernel_shares", &kernel_share_records},
                               Provider{"operation_networks", &network_records},
                               Provider{"trained", &trained_records},
                               Provider{"proofs_of", &proof_records}};

}  // namespace

RecordTables make_record_tables(const ClaimFile& file, std::size_t jobs) {
  RecordTables tables;
  for (const auto& [name, node] : file.records) {
    YamlMap map(node, "records." + name);
    const auto provider =
        std::find_if(providers.begin(), providers.end(), [&](const Provider& p) { return map.has(p.key); });
    if (provider == providers.end())
      map.fail(
          "expected experiment, points_of, jobs_of, largest_batches, makespans, kernel_shares, "
          "operation_networks, trained or proofs_of");
    tables[name] = provider->make(map, jobs);
    map.finish();
  }
  return tables;
}

}  // namespace convoy::studies
