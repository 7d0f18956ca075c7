// SPDX-License-Identifier: MIT
#include "sim/studies/claims/training_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "sim/prove/prove.h"
#include "sim/run/sweep.h"
#include "sim/studies/claims/configs.h"

namespace convoy::inline studies {
namespace {

std::vector<std::string> experiment_settings(YamlMap& map) {
  std::vector<std::string> settings;
  if (const YamlNode* list = map.find("set"))
    for (const YamlNode& item : list->items) settings.push_back(read_text(item, map.path_of("set")));
  if (const YamlNode* sweep = map.find("sweep")) settings.push_back("sweep=" + to_yaml(*sweep));
  return settings;
}

void add_target(const std::vector<LearningPoint>& learning, double target, Record& record) {
  const auto reached = std::find_if(learning.begin(), learning.end(),
                                    [&](const LearningPoint& point) { return point.accuracy >= target; });
  const bool never = reached == learning.end();
  constexpr double unreached = std::numeric_limits<double>::infinity();
  record.numbers["steps_to_target"] = never ? unreached : static_cast<double>(reached->step);
  record.numbers["time_to_target_s"] = never ? unreached : reached->time_s;
  double& best = record.numbers["best_accuracy"];
  for (const LearningPoint& point : learning) best = std::max(best, point.accuracy);
}

/// Of records that differ in the coordinate `key` alone, the first that reaches the target soonest.
std::vector<Record> best_of(const std::vector<Record>& records, const std::string& key) {
  std::vector<Record> best;
  std::map<std::string, std::size_t> kept_at;  // by the other coordinates
  for (const Record& record : records) {
    std::string others;
    for (const auto& [name, value] : record.texts)
      if (name.starts_with("point.") && name != "point." + key) others += name + "=" + value + ";";
    const auto [at, fresh] = kept_at.emplace(others, best.size());
    if (fresh) best.push_back(record);
    Record& kept = best[at->second];
    const double tried = fresh ? 1 : kept.numbers.at("tried") + 1;
    if (record.numbers.at("time_to_target_s") < kept.numbers.at("time_to_target_s")) kept = record;
    kept.numbers["tried"] = tried;
  }
  return best;
}

Record proof_record(const Experiment& experiment, std::size_t index) {
  Preparer preparer(experiment);
  preparer.ask_for_meaning();
  const PreparedRun run = preparer.prepare(index);
  const std::size_t devices = devices_used(run.plan, run.machine);
  const double images =
      static_cast<double>(experiment.point(index).training.batch.over(static_cast<std::int64_t>(devices)));
  const Proof proof = prove_plan(run.plan, run.report, *run.graph, run.machine, images);
  const bool proved = proof.outcome == Proof::Outcome::proved;
  Record record;
  record.texts = {{"model", run.graph->model.name}, {"strategy", run.strategy}};
  for (const auto& [path, value] : experiment.coordinates(index))
    record.texts["point." + path] = to_flow(value);
  record.numbers = {{"devices", static_cast<double>(devices)},
                    {"global_batch", images},
                    {"tasks", static_cast<double>(proof.tasks)},
                    {"proved", proved ? 1 : 0},
                    {"exact", proved && proof.allowed.empty() ? 1 : 0}};
  return record;
}

}  // namespace

std::vector<Record> trained_records(YamlMap& map, std::size_t jobs) {
  const Experiment experiment = load_config(map.text("trained"), experiment_settings(map));
  const double target = map.number("target", 0);
  std::vector<RunResult> runs = simulate_sweep(experiment, jobs).runs;
  std::vector<std::vector<LearningPoint>> learning;
  for (const RunResult& run : runs) {
    if (run.learning.empty()) map.fail("trained", "the experiment trains nothing: it has no numerics");
    learning.push_back(run.learning);
  }
  std::vector<Record> records = records_of(std::move(runs));
  for (std::size_t i = 0; i < records.size(); ++i) add_target(learning[i], target, records[i]);
  const std::string varied = map.text_or("best_of", "");
  if (!varied.empty() && !records.front().texts.contains("point." + varied))
    map.fail("best_of", fmt::format("the sweep does not vary '{}'", varied));
  return varied.empty() ? records : best_of(records, varied);
}

std::vector<Record> proof_records(YamlMap& map, std::size_t jobs) {
  const Experiment experiment = load_config(map.text("proofs_of"), experiment_settings(map));
  std::vector<Record> records;
  for (const std::string& answer : answers_of_workers(
           experiment.size(), jobs, [&](std::size_t i) { return to_json({proof_record(experiment, i)}); }))
    records.push_back(records_from_json(answer).front());
  return records;
}

}  // namespace convoy::studies
