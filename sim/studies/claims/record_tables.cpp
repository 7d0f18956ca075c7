// SPDX-License-Identifier: MIT
#include "sim/studies/claims/record_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sim/run/sweep.h"
#include "sim/studies/claims/configs.h"
#include "sim/studies/claims/network_records.h"
#include "sim/studies/claims/placement_records.h"
#include "sim/studies/job_study.h"

namespace convoy {
namespace {

std::vector<std::string> texts(YamlMap& map, std::string_view key) {
  std::vector<std::string> result;
  if (const YamlNode* list = map.find(key))
    for (const YamlNode& item : list->items) result.push_back(read_text(item, map.path_of(key)));
  return result;
}

std::vector<Record> experiment_records(YamlMap& map, std::size_t jobs) {
  return records_of(simulate_sweep(load_config(map.text("experiment"), texts(map, "set")), jobs).runs);
}

std::vector<Record> point_records(YamlMap& map, std::size_t jobs) {
  const std::string name = map.text("points_of");
  std::vector<std::vector<std::string>> settings;
  for (YamlMap& point : map.maps("points")) {
    std::vector<std::string>& of_point = settings.emplace_back();
    for (const std::string& key : point.keys())
      of_point.push_back(fmt::format("{}={}", key, to_flow(point.node(key))));
  }
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(settings.size(), jobs, [&](std::size_t i) {
         return to_json(records_of(simulate_sweep(load_config(name, settings[i]), 1).runs));
       }))
    for (Record& record : records_from_json(answer)) records.push_back(std::move(record));
  return records;
}

std::vector<Record> job_records(YamlMap& map, std::size_t jobs) {
  const Experiment experiment = load_config(map.text("jobs_of"), {});
  const JobStudy study = read_job_study(*experiment.jobs());
  const SourcePos& pos = experiment.jobs()->pos;
  const JobKinds kinds = job_kinds(simulate_sweep(experiment, jobs).runs, study, pos);
  const std::vector<YamlNode>& seeds = map.node("seeds").items;
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(seeds.size(), jobs, [&](std::size_t i) {
         JobStudy of_seed = study;
         of_seed.seeds = {static_cast<std::uint64_t>(read_integer(seeds[i], "seeds", 0))};
         return to_json(records_of(run_job_study(of_seed, kinds, pos)));
       }))
    for (Record& record : records_from_json(answer)) records.push_back(std::move(record));
  return records;
}

struct Provider {
  const char* key;
  std::vector<Record> (*make)(YamlMap& map, std::size_t jobs);
};
constexpr std::array providers{Provider{"experiment", &experiment_records},
                               Provider{"points_of", &point_records}, Provider{"jobs_of", &job_records},
                               Provider{"largest_batches", &largest_batch_records},
                               Provider{"makespans", &makespan_records},
                               Provider{"operation_networks", &network_records}};

}  // namespace

RecordTables make_record_tables(const ClaimFile& file, std::size_t jobs) {
  RecordTables tables;
  for (const auto& [name, node] : file.records) {
    YamlMap map(node, "records." + name);
    const auto provider =
        std::find_if(providers.begin(), providers.end(), [&](const Provider& p) { return map.has(p.key); });
    if (provider == providers.end()) map.fail("expected experiment, points_of, jobs_of, largest_batches, makespans or operation_networks");
    tables[name] = provider->make(map, jobs);
    map.finish();
  }
  return tables;
}

}  // namespace convoy
