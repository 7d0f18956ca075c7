// SPDX-License-Identifier: MIT
#include "sim/run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "sim/base/quantity.h"
#include "sim/run/workers.h"
#include "strategies/strategy.h"

namespace convoy::inline runs {
namespace {

/// A run that differs from the point's in one thing.
struct Question {
  std::string change;
  std::string algorithm;  ///< of all-reduce; "": the point's own
  WhatIf machine = {};
  bool one_more_server = false;
  bool unlimited_input = false;
  std::optional<ExecutionMode> execution = {};
};

/// What a simulation returns; negative cost: not known.
struct Reply {
  double step_time_s, images, usd_per_epoch;
};

std::string scalar_at(const YamlNode& mapping, std::string_view key) {
  const YamlNode* value = mapping.find(key);
  return value && value->kind == YamlNode::Kind::scalar ? value->scalar : std::string{};
}

/// The registry's algorithms for a data-parallel strategy that sums by all-reduce, without "auto".
std::vector<std::string> algorithms_of(const YamlNode& strategy) {
  std::vector<std::string> names;
  if (scalar_at(strategy, "kind") != "data_parallel" || scalar_at(strategy, "sync") != "all_reduce")
    return names;
  const KeyText* key = find_key(strategy_entry("data_parallel").keys, "algorithm");
  for (const std::string& name : key->choices)
    if (name != "auto") names.push_back(name);
  return names;
}

void set_scalar(YamlNode& mapping, const std::string& key, const std::string& text) {
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.scalar = text;
  set_path(mapping, key, std::move(value));
}

/// The count of the cluster's last kind of server, if it has one.
YamlNode* count_of_servers(YamlNode& cluster) {
  const auto entry = [](YamlNode& mapping, std::string_view key) -> YamlNode* {
    for (auto& [name, value] : mapping.entries)
      if (name == key) return &value;
    return nullptr;
  };
  YamlNode* nodes = entry(cluster, "nodes");
  if (nodes && nodes->kind == YamlNode::Kind::scalar) return nodes;
  if (!nodes || nodes->kind != YamlNode::Kind::sequence || nodes->items.empty()) return nullptr;
  return entry(nodes->items.back(), "count");
}

bool has_one_more(const YamlNode& cluster) {
  YamlNode copy = cluster;
  return count_of_servers(copy) != nullptr;
}

Point changed(const Point& point, const Question& question) {
  Point other = point;
  if (!question.algorithm.empty()) set_scalar(other.strategy, "algorithm", question.algorithm);
  if (question.unlimited_input) other.training.input = InputSpec{};
  if (question.execution) other.training.options.execution = *question.execution;
  if (question.one_more_server)
    if (YamlNode* count = count_of_servers(other.cluster))
      count->scalar = std::to_string(read_integer(*count, "cluster.nodes", 1) + 1);
  return other;
}

/// Ways of execution that issue less than the current one: prepared graphs, in frameworks that do not use
/// them by default, and compilers, in those that have one (XLA, torch.compile).
std::vector<ExecutionMode> leaner_executions(const TrainingOptions& options) {
  std::vector<ExecutionMode> modes;
  const Framework framework = options.framework;
  if (options.execution == ExecutionMode::eager) modes.push_back(ExecutionMode::graph);
  const bool has_compiler = framework == Framework::pytorch || framework == Framework::tensorflow ||
                            framework == Framework::tensorflow1;
  if (options.execution != ExecutionMode::compiled && has_compiler) modes.push_back(ExecutionMode::compiled);
  return modes;
}

/// Whether hosts need time to issue operations to any of the cluster's devices.
bool has_issue_times(const ClusterSpec& cluster) {
  return std::any_of(cluster.servers.begin(), cluster.servers.end(), [](const ServerSpec& server) {
    return std::any_of(server.devices.begin(), server.devices.end(),
                       [](const auto& devices) { return devices.first.issue_factor > 0; });
  });
}

std::vector<Question> questions_of(const Point& point, const ClusterSpec& cluster) {
  std::vector<Question> questions{{"all links twice as fast", "", {2, 1, false}},
                                  {"no latency", "", {1, 1, true}},
                                  {"all devices twice as fast", "", {1, 2, false}}};
  if (has_issue_times(cluster)) {
    questions.push_back({"hosts issue operations twice as fast", "", {1, 1, false, 2}});
    // Measurements were made with the execution that the experiment states.
    if (!point.training.anchor && !point.training.profile)
      for (const ExecutionMode mode : leaner_executions(point.training.options))
        questions.push_back({fmt::format("execution: {}", to_string(mode)), "", {}, false, false, mode});
  }
  for (const std::string& name : algorithms_of(point.strategy))
    questions.push_back({"algorithm: " + name, name});
  if (!point.training.input.synthetic) questions.push_back({"input pipeline unlimited", "", {}, false, true});
  if (has_one_more(point.cluster)) questions.push_back({"one more server", "", {}, true});
  return questions;
}

}  // namespace

Explanation::Explanation(Preparer& preparer, const Point& point, std::size_t jobs) {
  const std::vector<Question> questions = questions_of(point, preparer.cluster(point.cluster));
  std::vector<std::optional<Row>> rows(questions.size());
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    auto run = std::make_shared<const PreparedRun>(
        preparer.prepare(changed(point, questions[i]), nullptr, questions[i].machine));
    return [run] {
      const RunResult result = simulate(*run, false).result;
      const Reply reply{result.step_time_s, result.global_batch, result.cost_usd_per_epoch.value_or(-1)};
      return std::string(reinterpret_cast<const char*>(&reply), sizeof reply);
    };
  };
  const auto answered = [&](std::size_t i, WorkerAnswer answer) {
    if (answer.kind != WorkerAnswer::Kind::done)
      return;  // a batch that does not divide, a fabric that is full
    Reply reply;
    std::memcpy(&reply, answer.bytes.data(), sizeof reply);
    rows[i] = Row{questions[i].change, questions[i].algorithm, reply.step_time_s, reply.images, {}};
    if (reply.usd_per_epoch >= 0) rows[i]->usd_per_epoch = reply.usd_per_epoch;
  };
  run_in_workers(questions.size(), jobs, work, answered, {.apart = preparer.replays_apart()});
  for (std::optional<Row>& row : rows)
    if (row) rows_.push_back(std::move(*row));
}

void Explanation::add_to(RunResult& result) const {
  const Row* best = nullptr;  // of the algorithms
  for (const Row& row : rows_) {
    if (row.algorithm.empty()) continue;
    if (!best || row.step_time_s < best->step_time_s) best = &row;
  }
  for (const Row& row : rows_) {
    if (!row.algorithm.empty() && &row != best) continue;
    Counterfactual counterfactual;
    counterfactual.change = row.change;
    if (&row == best)
      counterfactual.change = fmt::format(
          "best algorithm: {}{}", row.algorithm,
          result.algorithms.empty() ? ""
                                    : fmt::format(" (auto chose {})", fmt::join(result.algorithms, ", ")));
    counterfactual.step_time_s = row.step_time_s;
    counterfactual.gain_s = result.step_time_s - row.step_time_s * result.global_batch / row.images;
    if (result.cost_usd_per_epoch && row.usd_per_epoch)
      counterfactual.gain_usd_per_epoch = *result.cost_usd_per_epoch - *row.usd_per_epoch;
    result.counterfactuals.push_back(std::move(counterfactual));
  }
  if (!best || result.bottleneck.kind != "latency") return;
  if (const double gain_s = result.step_time_s - best->step_time_s; gain_s > 0)
    result.bottleneck.text +=
        fmt::format("; algorithm: {} would save {}", best->algorithm, format_time(gain_s));
}

}  // namespace convoy::runs
