// SPDX-License-Identifier: MIT
#include "sim/planning/plan_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/planning/plan_lists.h"
#include "sim/planning/plan_machines.h"
#include "sim/run/search/search_spec.h"
#include "topologies/price_age.h"

namespace convoy::inline planning {
namespace {

constexpr std::int64_t most_batch = 1'000'000;
const std::vector<std::string> objectives{"cost", "time", "energy", "carbon", "front"};
const std::vector<std::string> reaction_names{"wait", "continue"};      // the enumeration's order
const std::vector<std::string> market_names{"on_demand", "spot"};       // the enumeration's order
const std::vector<std::string> interruption_names{"advisor", "trace"};  // the enumeration's order

void read_strategies(YamlMap& map, PlanSpec& spec) {
  if (!map.find("strategies")) {
    spec.strategies = {
        parse_yaml("{kind: data_parallel, sync: all_reduce, algorithm: auto}", "plan.strategies")};
    return;
  }
  const YamlNode& node = map.node("strategies");
  if (node.kind == YamlNode::Kind::scalar && node.scalar == "auto") return;
  if (node.kind != YamlNode::Kind::sequence || node.items.empty())
    map.fail("strategies", "expected auto, or a list such as [{kind: data_parallel, sync: all_reduce}]");
  std::vector<std::pair<std::tuple<std::size_t, std::string, std::string>, YamlNode>> found;
  for (const YamlNode& item : node.items) {
    if (is_search(item))
      throw InputError(item.pos,
                       "plan.strategies: write `strategies: auto` for those that `kind: auto` tries");
    YamlMap(item, "plan.strategies");
    for (YamlNode& each : multiplied_out(item)) {
      const std::string label = read_strategy(each)->label();
      found.push_back({{label.size(), label, to_flow(each)}, std::move(each)});
    }
  }
  // Where strategies come to the same the first is chosen; which it is must not hang on the order of the
  // list.
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [key, each] : found) spec.strategies.push_back(std::move(each));
}

Keys<PlanSpec> failure_keys_of_plan() {
  return {optional_quantity_key<PlanSpec>("repair", "0s", Dimension::time, false, "until a host is replaced",
                                          &PlanSpec::repair_s)};
}

/// `failures: {repair: 10min}`, or `failures: true`.
void read_failures_of_hosts(YamlMap& map, PlanSpec& spec) {
  if (!map.find("failures")) return;
  if (map.node("failures").kind != YamlNode::Kind::mapping) {
    spec.failures = map.flag_or("failures", false);
    return;
  }
  spec.failures = true;
  read_part(failure_keys_of_plan(), map.map("failures"), spec);
}

/// Values of an enumeration, each once; the default stays where the key is absent.
/// @param names in the enumeration's order
template <class Enum>
Key<PlanSpec> set_key(std::string name, std::string otherwise, std::vector<std::string> names,
                      std::string meaning, std::vector<Enum> PlanSpec::*field) {
  KeyText text =
      key_text(name, std::move(otherwise), forms::list(forms::name(names), "a list of " + list_of(names), 1),
               std::move(meaning));
  text.choices = names;
  return {std::move(text), [name, names, field](YamlMap& map, PlanSpec& spec) {
            if (!map.find(name)) return;
            (spec.*field).clear();
            for (const std::size_t i : read_choices(map, name, names))
              (spec.*field).push_back(static_cast<Enum>(i));
          }};
}

/// Whole numbers from 1.
ValueForm counts_form(std::string what, std::int64_t most) {
  return forms::list(forms::whole(1, most), std::move(what), 1);
}

Keys<PlanSpec> rental_keys() {
  using Spec = PlanSpec;
  return {
      choice_key<Spec>(
          "objective", objectives,
          "what is made as small as possible; front: time x cost, for those who want to see both",
          &Spec::objective)
          .at(&Spec::objective_pos),
      mapping_key<Spec>("constraints", "none", "what the answer has to keep", constraint_keys(),
                        &Spec::constraints),
      custom_key<Spec>(
          "servers", "all with a price",
          forms::list(forms::either({forms::text("a name"), forms::section("named server", "{name, ...}")}),
                      "a list of names, patterns or {name, ...}", 1),
          "of the catalogue, or written out (`convoy show keys server`)", &read_servers)
          .at(&Spec::servers_pos),
      custom_key<Spec>("nodes", "1",
                       forms::either({counts_form("a list of counts", most_nodes), forms::parts("{max}")}),
                       "of one kind of server", &read_nodes)
          .with_parts(texts_of(most_nodes_keys())),
      flag_key<Spec>("mixtures", "two kinds of servers of a provider side by side too, each in all counts",
                     &Spec::mixtures),
      custom_key<Spec>("batch_per_device", "powers of two that fit", counts_form("a list", most_batch),
                       "images a device and step",
                       [](YamlMap& map, Spec& spec) {
                         if (map.find("batch_per_device"))
                           spec.batches = read_numbers(map, "batch_per_device", most_batch);
                       }),
      set_key<Precision>("precision", "that of training, else fp32", texts_of_names(precision_names),
                         "of the computation", &Spec::precisions),
      custom_key<Spec>("strategies", "[{kind: data_parallel, sync: all_reduce, algorithm: auto}]",
                       forms::either({forms::list(forms::section("strategies", "{kind, ...}"), "a list", 1),
                                      forms::exact_name({"auto"})}),
                       "lists of values stand for all combinations; auto: what `kind: auto` tries",
                       &read_strategies)};
}

/// Of an item of `scenarios` (read_scenarios).
std::vector<KeyText> scenario_texts() {
  std::vector<KeyText> texts{
      key_text("name", "", forms::text("a text"), "of the scenario"),
      key_text("set", "", forms::entries(forms::anything("value"), "{path: value, ...}"),
               "what differs, by dotted paths")};
  for (KeyText& text : texts) text.required = true;
  return texts;
}

Keys<PlanSpec> risk_keys() {
  using Spec = PlanSpec;
  return {
      set_key<Market>("market", "on_demand", market_names, "how machines are rented", &Spec::markets)
          .at(&Spec::markets_pos),
      choice_key<Spec>("interruptions", interruption_names,
                       "of spot machines: the provider's rates of the last month, or those of recorded "
                       "traces",
                       &Spec::interruptions),
      custom_key<Spec>("failures", "",
                       forms::either({forms::flag().said("false | true"), forms::parts("{repair}")}),
                       "hosts on demand fail too, at recorded rates (topologies/catalog/failures.csv)",
                       &read_failures_of_hosts)
          .with_parts(texts_of(failure_keys_of_plan())),
      set_key<OnInterruption>("on_interruption", "wait", reaction_names,
                              "when machines are taken away or fail: wait for others, or continue with "
                              "those that are left",
                              &Spec::reactions),
      custom_key<Spec>("region", "the price table's first", forms::list(forms::text("a region"), "a list", 1),
                       "where machines are rented", &read_regions),
      custom_key<Spec>("electricity", "none", forms::text("a price such as 0.15USD/kWh"),
                       "of machines of one's own, in addition to their price; those that say none cost "
                       "nothing else",
                       &read_electricity),
      custom_key<Spec>("scenarios", "none", forms::list(forms::parts("{name, set}"), "a list of {name, set}"),
                       "the same plan with other values, whose choices are shown side by side",
                       [](YamlMap& map, Spec&) { map.find("scenarios"); })
          .with_parts(scenario_texts())};
}

const Keys<PlanSpec>& all_plan_keys() {
  static const Keys<PlanSpec> keys = [] {
    Keys<PlanSpec> table = rental_keys();
    append_keys(table, risk_keys());
    return table;
  }();
  return keys;
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
    precisions = {read_choice<Precision>(map, "precision", texts_of_names(precision_names))};
  }
  YamlNode rest = training;
  std::erase_if(rest.entries, [](const auto& entry) {
    return entry.first == "batch_per_device" || entry.first == "precision";
  });
  return rest;
}

std::optional<double> samples_of(const YamlNode& training) {
  YamlMap map(training, "training");
  if (!map.find("dataset")) return std::nullopt;
  return static_cast<double>(map.map("dataset").integer("samples", 1));
}

Optimizer optimizer_of(const YamlNode& training) {
  YamlMap map(training, "training");
  return read_choice<Optimizer>(map, "optimizer", texts_of_names(optimizer_names),
                                TrainingOptions{}.optimizer);
}

/// `training:` and `plan:` are read together, since each may say the batch and the precision.
void read_training_and_plan(YamlMap& tree, PlanSpec& spec) {
  YamlMap plan = tree.map("plan");
  spec.training = fixed_training(tree.node("training"), plan, spec.batches, spec.precisions);
  if (const YamlNode* input = YamlMap(spec.training, "training").find("input"))
    spec.input = read_input(*input, "training.input");
  spec.goal = Goal::read(tree.node("goal"), samples_of(spec.training), optimizer_of(spec.training));
  read_part(all_plan_keys(), std::move(plan), spec);
}

const Keys<PlanSpec>& plan_file_keys() {
  using Spec = PlanSpec;
  static const Keys<Spec> keys{
      custom_key<Spec>("experiment", "", forms::text("a name"), "of the plan and of its folder of results",
                       [](YamlMap& map, Spec&) { map.find("experiment"); })
          .required(),
      node_key<Spec>("model",
                     forms::either({forms::text("a name", "models"), forms::section("model", "{...}")})
                         .said("as in an experiment"),
                     "what is trained (docs/models.md)", &Spec::model)
          .required(),
      node_key<Spec>("training", forms::section("training", "as in an experiment"),
                     "how it is trained, without global_batch (`convoy show keys training`)", &Spec::training)
          .required(),
      custom_key<Spec>("goal", "", forms::section("goal", "a mapping"),
                       "how long it is trained (`convoy show keys goal`)",
                       [](YamlMap& map, Spec&) { map.find("goal"); })
          .required(),
      custom_key<Spec>("plan", "", forms::section("plan", "a mapping"),
                       "what to choose among (`convoy show keys plan`)", &read_training_and_plan)
          .required()};
  return keys;
}

}  // namespace

std::string_view to_string(OnInterruption reaction) {
  return reaction_names[static_cast<std::size_t>(reaction)];
}

std::string_view to_string(PlanObjective objective) {
  return objectives[static_cast<std::size_t>(objective)];
}

namespace {

PlanSpec read_tree(const YamlNode& whole, const std::string& name,
                   const std::shared_ptr<const PriceTable>& prices);

/// @param tree of the plan with its scenarios
std::vector<PlanVariant> read_scenarios(const YamlNode& tree, const std::string& name,
                                        const std::shared_ptr<const PriceTable>& prices) {
  YamlNode rest = tree;
  for (auto& [key, value] : rest.entries)
    if (key == "plan")
      std::erase_if(value.entries, [](const auto& entry) { return entry.first == "scenarios"; });
  std::vector<PlanVariant> scenarios;
  YamlMap root(tree, "");
  YamlMap plan = root.map("plan");
  if (!plan.find("scenarios")) return scenarios;
  for (YamlMap& map : plan.maps("scenarios")) {
    PlanVariant& scenario = scenarios.emplace_back();
    scenario.name = map.text("name");
    scenario.pos = map.pos();
    for (const PlanVariant& other : scenarios)
      if (&other != &scenario && other.name == scenario.name)
        map.fail("name", fmt::format("'{}' is another scenario's name", scenario.name));
    YamlNode other = rest;
    YamlMap set = map.map("set");
    for (const std::string& path : set.keys()) {
      const YamlNode& value = set.node(path);
      if (!path.starts_with("plan.") && !path.starts_with("goal.") && !path.starts_with("training.") &&
          path != "model")
        set.fail(path, "a scenario sets model, or parts of training, goal or plan");
      if (path == "plan.scenarios" || path.starts_with("plan.scenarios."))
        set.fail(path, "a scenario has no scenarios of its own");
      scenario.set.push_back(path + "=" + to_yaml(value));
      set_path(other, path, value);
    }
    map.finish();
    try {
      scenario.spec = std::make_shared<const PlanSpec>(read_tree(other, name, prices));
    } catch (const InputError& error) {
      throw InputError(scenario.pos, fmt::format("plan.scenarios '{}': {}", scenario.name, error.what()));
    }
  }
  return scenarios;
}

PlanSpec read_tree(const YamlNode& whole, const std::string& name,
                   const std::shared_ptr<const PriceTable>& prices) {
  YamlMap tree(whole, "");
  PlanSpec spec;
  spec.user_prices = prices;
  spec.name = name;
  read_part(plan_file_keys(), std::move(tree), spec);
  const YamlNode* network =
      spec.model.kind == YamlNode::Kind::mapping ? spec.model.find("name") : &spec.model;
  spec.doubts = spec.goal.doubts(network ? network->scalar : "", optimizer_of(spec.training));
  return spec;
}

}  // namespace

double PlanSpec::price_age_years(const Price& price) const {
  return price.region.empty() ? 0 : std::max(0.0, years_between(last_seen(price), newest_day(prices())));
}

PlanSpec read_plan(const Experiment& experiment, const std::string& prices) {
  YamlMap tree(experiment.tree(), "");
  if (!tree.has("plan") && !tree.has("goal") && (tree.has("strategy") || experiment.swept()))
    throw InputError(
        tree.pos(),
        "this is an experiment: use `convoy run FILE`; a plan has the keys goal and plan in place "
        "of cluster and strategy");
  if (experiment.swept())
    throw InputError(tree.pos(), "sweep: a plan tries what its lists of values say; it has no sweep");
  for (const char* key : {"cluster", "strategy"})
    if (tree.has(key))
      tree.fail(key, fmt::format("a plan chooses it; write plan.{} instead",
                                 key == std::string_view("cluster") ? "servers" : "strategies"));
  std::shared_ptr<const PriceTable> table;
  if (!prices.empty()) table = std::make_shared<const PriceTable>(PriceTable::read(prices));
  PlanSpec spec = read_tree(experiment.tree(), experiment.name(), table);
  spec.scenarios = read_scenarios(experiment.tree(), experiment.name(), table);
  return spec;
}

std::vector<KeySection> plan_keys() {
  return {{"plan-file", "the file that `convoy plan` takes", texts_of(plan_file_keys())},
          {"plan", "what a plan chooses among", texts_of(all_plan_keys())}};
}

}  // namespace convoy::planning
