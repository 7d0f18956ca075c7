// SPDX-License-Identifier: MIT
#include "sim/run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "sim/base/quantity.h"
#include "sim/run/workers.h"
#include "strategies/strategy.h"

namespace convoy {
namespace {

/// A run that differs from the point's in one thing.
struct Question {
  std::string change;
  std::string algorithm;  ///< of all-reduce; "": the point's own
  WhatIf machine = {};
  bool one_more_server = false;
};

struct Reply {
  double step_time_s = 0, images = 0, usd_per_epoch = -1;  ///< below 0: not known
};

std::string scalar_at(const YamlNode& mapping, std::string_view key) {
  const YamlNode* value = mapping.find(key);
  return value && value->kind == YamlNode::Kind::scalar ? value->scalar : std::string{};
}

/// The registry's algorithms of a data-parallel strategy that sums by all-reduce; "auto" is none.
std::vector<std::string> algorithms_of(const YamlNode& strategy) {
  std::vector<std::string> names;
  if (scalar_at(strategy, "kind") != "data_parallel" || scalar_at(strategy, "sync") != "all_reduce") return names;
  for (const StrategyEntry& entry : strategy_registry())
    for (const StrategyKey& key : entry.keys) {
      if (entry.kind != "data_parallel" || key.name != "algorithm") continue;
      std::string_view rest = key.values;
      while (!rest.empty()) {
        const std::size_t bar = std::min(rest.find(" | "), rest.size());
        if (const std::string_view name = rest.substr(0, bar); name != "auto") names.emplace_back(name);
        rest.remove_prefix(std::min(bar + 3, rest.size()));
      }
    }
  return names;
}

void set_scalar(YamlNode& mapping, const std::string& key, const std::string& text) {
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.scalar = text;
  set_path(mapping, key, std::move(value));
}

/// The count of the cluster's last kind of server, where it says one.
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
  if (question.one_more_server)
    if (YamlNode* count = count_of_servers(other.cluster))
      count->scalar = std::to_string(read_integer(*count, "cluster.nodes", 1) + 1);
  return other;
}

std::vector<Question> questions_of(const Point& point) {
  std::vector<Question> questions{{"all links twice as fast", "", {2, 1, false}},
                                  {"no latency", "", {1, 1, true}},
                                  {"all devices twice as fast", "", {1, 2, false}}};
  for (const std::string& name : algorithms_of(point.strategy)) questions.push_back({"algorithm: " + name, name});
  if (has_one_more(point.cluster)) questions.push_back({"one more server", "", {}, true});
  return questions;
}

std::vector<std::optional<Reply>> ask(Preparer& preparer, const Point& point, const std::vector<Question>& questions,
                                      std::size_t jobs) {
  std::vector<std::optional<Reply>> replies(questions.size());
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    auto run = std::make_shared<const PreparedRun>(
        preparer.prepare(changed(point, questions[i]), nullptr, questions[i].machine));
    return [run] {
      const RunResult result = simulate(*run, false).result;
      const Reply reply{result.step_time_s, result.global_batch, result.cost_usd_per_epoch.value_or(-1)};
      return std::string(reinterpret_cast<const char*>(&reply), sizeof reply);
    };
  };
  run_in_workers(questions.size(), jobs, work, [&](std::size_t i, WorkerAnswer answer) {
    if (answer.kind != WorkerAnswer::Kind::done) return;  // a tree on one device, a batch that does not divide
    Reply reply;
    std::memcpy(&reply, answer.bytes.data(), sizeof reply);
    replies[i] = reply;
  });
  return replies;
}

Counterfactual counterfactual(std::string change, const Reply& reply, const RunResult& result) {
  Counterfactual row;
  row.change = std::move(change);
  row.step_time_s = reply.step_time_s;
  // For as many images: with one more server a step may have more of them.
  row.gain_s = result.step_time_s - reply.step_time_s * result.global_batch / reply.images;
  if (result.cost_usd_per_epoch && reply.usd_per_epoch >= 0)
    row.gain_usd_per_epoch = *result.cost_usd_per_epoch - reply.usd_per_epoch;
  return row;
}

/// Equal to the last digits: the run's own algorithm, or the one that `auto` came to.
bool as_long(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); }

}  // namespace

void explain(Preparer& preparer, const Point& point, std::size_t jobs, RunResult& result) {
  const std::vector<Question> questions = questions_of(point);
  const std::vector<std::optional<Reply>> replies = ask(preparer, point, questions, jobs);
  std::optional<std::size_t> best;
  std::string own;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (!replies[i] || questions[i].algorithm.empty()) continue;
    if (!best || replies[i]->step_time_s < replies[*best]->step_time_s) best = i;
    if (own.empty() && as_long(replies[i]->step_time_s, result.step_time_s)) own = questions[i].algorithm;
  }
  const bool chose = scalar_at(point.strategy, "algorithm") == "auto" && !own.empty();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (!replies[i]) continue;
    if (questions[i].algorithm.empty()) {
      result.counterfactuals.push_back(counterfactual(questions[i].change, *replies[i], result));
    } else if (i == best) {
      const std::string text = fmt::format("best algorithm: {}{}", questions[i].algorithm,
                                           chose ? fmt::format(" (auto chose {})", own) : "");
      result.counterfactuals.push_back(counterfactual(text, *replies[i], result));
    }
  }
  if (!best || result.bottleneck.kind != "latency") return;
  const double gain_s = result.step_time_s - replies[*best]->step_time_s;
  if (gain_s > 0)
    result.bottleneck.text +=
        fmt::format("; algorithm: {} would save {}", questions[*best].algorithm, format_time(gain_s));
}

}  // namespace convoy
