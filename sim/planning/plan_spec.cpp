// SPDX-License-Identifier: MIT
#include "sim/planning/plan_spec.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "sim/base/keys.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "sim/run/search/search_spec.h"
#include "topologies/catalog.h"

namespace convoy {
namespace {

constexpr std::int64_t most_nodes = 100'000, most_batch = 1'000'000;
const std::vector<std::string> objectives{"cost", "time", "energy", "carbon", "front"};
const std::vector<std::string> reaction_names{"wait", "continue"};               // the enumeration's order
const std::vector<std::string> precision_names{"fp32", "tf32", "fp16", "bf16"};  // the enumeration's order

bool is_list(const YamlNode& node) { return node.kind == YamlNode::Kind::sequence; }

/// The items of a list, or the one value that stands for a list of one. @throws InputError: an empty list
std::vector<const YamlNode*> items_of(YamlMap& map, std::string_view key) {
  const YamlNode& node = map.node(key);
  if (!is_list(node)) return {&node};
  if (node.items.empty()) map.fail(key, "the list is empty");
  std::vector<const YamlNode*> items;
  for (const YamlNode& item : node.items) items.push_back(&item);
  return items;
}

/// Those of `allowed`, each once. @throws InputError
std::vector<std::size_t> choices(YamlMap& map, std::string_view key,
                                 const std::vector<std::string>& allowed) {
  std::vector<std::size_t> found;
  for (const YamlNode* item : items_of(map, key)) {
    const std::string text = read_text(*item, map.path_of(key));
    const auto at = std::find(allowed.begin(), allowed.end(), text);
    if (at == allowed.end())
      throw InputError(item->pos, fmt::format("{}: '{}'{}; allowed are {}", map.path_of(key), text,
                                              suggestion(text, allowed), list_of(allowed)));
    found.push_back(static_cast<std::size_t>(at - allowed.begin()));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::int64_t> numbers(YamlMap& map, std::string_view key, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (const YamlNode* item : items_of(map, key))
    values.push_back(read_integer(*item, map.path_of(key), 1, most));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// A list of counts, or {max: N}: 1, 2, 4, ... up to N.
std::vector<std::int64_t> read_nodes(YamlMap& map) {
  if (!map.find("nodes")) return {1};
  if (map.node("nodes").kind != YamlNode::Kind::mapping) return numbers(map, "nodes", most_nodes);
  YamlMap inner = map.map("nodes");
  const std::int64_t most = inner.integer("max", 1, most_nodes);
  inner.finish();
  std::vector<std::int64_t> nodes;
  for (std::int64_t n = 1; n <= most; n *= 2) nodes.push_back(n);
  return nodes;
}

double read_budget(YamlMap& map) {
  const std::string text = read_text(map.node("budget"), map.path_of("budget"));
  const std::string_view unit = "USD";
  std::optional<double> value;
  if (text.ends_with(unit)) {
    std::string_view digits = std::string_view(text).substr(0, text.size() - unit.size());
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    value = parse_number(digits);
  }
  if (!value || *value <= 0) map.fail("budget", fmt::format("'{}' is no sum above 0 such as 500USD", text));
  return *value;
}

/// "aws" of "aws-p3.2xlarge": what the names of servers begin with.
std::vector<std::string> providers_of(YamlMap& map) {
  std::vector<std::string> known;
  for (const std::string& name : server_names())
    if (const std::size_t dash = name.find('-'); dash != std::string::npos)
      known.push_back(name.substr(0, dash));
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::vector<std::string> found;
  for (const std::size_t i : choices(map, "providers", known)) found.push_back(known[i]);
  return found;
}

PlanConstraints read_constraints(YamlMap map) {
  PlanConstraints constraints;
  if (map.find("deadline")) constraints.deadline_s = map.quantity("deadline", Dimension::time, true);
  if (map.find("budget")) constraints.budget_usd = read_budget(map);
  if (map.find("max_devices")) constraints.max_devices = map.integer("max_devices", 1);
  if (map.find("max_global_batch")) constraints.max_global_batch = map.integer("max_global_batch", 1);
  constraints.memory = map.quantity_or("memory", Dimension::fraction, 1, true);
  if (constraints.memory > 1) map.fail("memory", "a device has no more than 100% of its memory");
  if (map.find("providers")) {
    constraints.providers = providers_of(map);
    constraints.providers_pos = map.pos("providers");
  }
  map.finish();
  return constraints;
}

std::vector<std::string> matching_servers(YamlMap& map) {
  const std::vector<std::string> names = server_names();
  std::vector<std::string> found;
  for (const YamlNode* item : items_of(map, "servers")) {
    const std::string pattern = read_text(*item, map.path_of("servers"));
    const std::size_t before = found.size();
    for (const std::string& name : names)
      if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) found.push_back(name);
    if (found.size() == before)
      throw InputError(item->pos,
                       fmt::format("plan.servers: no server of the catalogue is called '{}'{}; `convoy "
                                   "show servers` lists them",
                                   pattern, suggestion(pattern, names)));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<YamlNode> read_strategies(YamlMap& map) {
  const YamlNode& node = map.node("strategies");
  if (node.kind == YamlNode::Kind::scalar && node.scalar == "auto") return {};
  if (!is_list(node) || node.items.empty())
    map.fail("strategies", "expected auto, or a list such as [{kind: data_parallel, sync: all_reduce}]");
  std::vector<YamlNode> strategies;
  for (const YamlNode& item : node.items) {
    if (is_search(item))
      throw InputError(item.pos,
                       "plan.strategies: write `strategies: auto` for those that `kind: auto` tries");
    YamlMap(item, "plan.strategies");
    for (YamlNode& each : multiplied_out(item)) {
      read_strategy(each);
      strategies.push_back(std::move(each));
    }
  }
  return strategies;
}

/// Regions that the price table knows; others would leave every candidate without a price.
std::vector<std::string> read_regions(YamlMap& map, const PriceTable& prices) {
  std::set<std::string> known;
  for (const Price& price : prices.prices()) known.insert(price.region);
  std::vector<std::string> regions;
  for (const YamlNode* item : items_of(map, "region")) {
    std::string region = read_text(*item, map.path_of("region"));
    const std::vector<std::string> names(known.begin(), known.end());
    if (!known.contains(region))
      throw InputError(item->pos,
                       fmt::format("plan.region: no price in a region '{}'{}; the price table has {}", region,
                                   suggestion(region, names), list_of(names)));
    if (std::find(regions.begin(), regions.end(), region) == regions.end())
      regions.push_back(std::move(region));
  }
  return regions;
}

/// `failures: {repair: 10min}`, or `failures: true`.
void read_failures_of_hosts(YamlMap& map, PlanSpec& spec) {
  if (!map.find("failures")) return;
  if (map.node("failures").kind != YamlNode::Kind::mapping) {
    spec.failures = map.flag_or("failures", false);
    return;
  }
  YamlMap inner = map.map("failures");
  spec.failures = true;
  spec.repair_s = inner.quantity_or("repair", Dimension::time, 0, false);
  inner.finish();
}

/// `training:` without what the plan varies; what it is may be said there or in the plan, not in both.
YamlNode fixed_training(const YamlNode& training, const YamlMap& plan, std::vector<std::int64_t>& batches,
                        std::vector<Precision>& precisions) {
  YamlMap map(training, "training");
  if (map.has("global_batch"))
    throw InputError(
        map.pos("global_batch"),
        "training.global_batch: a plan gives plan.batch_per_device, and limits the global batch with "
        "plan.constraints.max_global_batch");
  if (const YamlNode* node = map.find("batch_per_device")) {
    if (plan.has("batch_per_device")) map.fail("batch_per_device", "plan.batch_per_device is given too");
    batches = {read_integer(*node, "training.batch_per_device", 1, most_batch)};
  }
  if (map.has("precision")) {
    if (plan.has("precision")) map.fail("precision", "plan.precision is given too");
    precisions = {read_choice<Precision>(map, "precision", precision_names)};
  }
  YamlNode rest = training;
  std::erase_if(rest.entries, [](const auto& entry) {
    return entry.first == "batch_per_device" || entry.first == "precision";
  });
  return rest;
}

std::optional<double> samples_of(const YamlNode& training) {
  const YamlNode* dataset = training.find("dataset");
  if (!dataset) return std::nullopt;
  YamlMap map(*dataset, "training.dataset");
  return static_cast<double>(map.integer("samples", 1));
}

}  // namespace

std::string_view to_string(OnInterruption reaction) {
  return reaction_names[static_cast<std::size_t>(reaction)];
}

std::string_view to_string(PlanObjective objective) {
  return objectives[static_cast<std::size_t>(objective)];
}

PlanSpec read_plan(const Experiment& experiment, const std::string& prices) {
  YamlMap tree(experiment.tree(), "");
  tree.find("experiment");
  if (experiment.swept())
    throw InputError(tree.pos(), "sweep: a plan tries what its lists of values say; it has no sweep");
  for (const char* key : {"cluster", "strategy"})
    if (tree.has(key))
      tree.fail(key, fmt::format("a plan chooses it; write plan.{} instead",
                                 key == std::string_view("cluster") ? "servers" : "strategies"));
  PlanSpec spec;
  if (!prices.empty()) spec.user_prices = std::make_shared<const PriceTable>(PriceTable::read(prices));
  spec.name = experiment.name();
  spec.model = tree.node("model");
  YamlMap map = tree.map("plan");
  spec.precisions = {Precision::fp32};
  spec.training = fixed_training(tree.node("training"), map, spec.batches, spec.precisions);
  spec.goal = Goal::read(tree.node("goal"), samples_of(spec.training));
  tree.finish();
  const YamlNode* network =
      spec.model.kind == YamlNode::Kind::mapping ? spec.model.find("name") : &spec.model;
  spec.doubts = spec.goal.doubts(network ? network->scalar : "");
  spec.objective = read_choice(map, "objective", objectives, PlanObjective{});
  spec.objective_pos = map.pos("objective");
  if (map.find("constraints")) spec.constraints = read_constraints(map.map("constraints"));
  spec.all_servers = !map.find("servers");
  spec.servers = spec.all_servers ? server_names() : matching_servers(map);
  spec.nodes = read_nodes(map);
  spec.mixtures = map.flag_or("mixtures", false);
  if (map.find("batch_per_device")) spec.batches = numbers(map, "batch_per_device", most_batch);
  if (map.find("precision")) {
    spec.precisions.clear();
    for (const std::size_t p : choices(map, "precision", precision_names))
      spec.precisions.push_back(static_cast<Precision>(p));
  }
  spec.markets = {Market::on_demand};
  spec.markets_pos = map.pos("market");
  if (map.find("market")) {
    spec.markets.clear();
    for (const std::size_t m : choices(map, "market", {"on_demand", "spot"}))  // the enumeration's order
      spec.markets.push_back(static_cast<Market>(m));
  }
  spec.interruptions = read_choice(map, "interruptions", {"advisor", "trace"}, RiskKind{});
  read_failures_of_hosts(map, spec);
  if (map.find("on_interruption")) {
    spec.reactions.clear();
    for (const std::size_t r : choices(map, "on_interruption", reaction_names))
      spec.reactions.push_back(static_cast<OnInterruption>(r));
  }
  if (map.find("region")) spec.regions = read_regions(map, spec.prices());
  if (map.find("strategies"))
    spec.strategies = read_strategies(map);
  else
    spec.strategies = {
        parse_yaml("{kind: data_parallel, sync: all_reduce, algorithm: auto}", "plan.strategies")};
  map.finish();
  return spec;
}

}  // namespace convoy
