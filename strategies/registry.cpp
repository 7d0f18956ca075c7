// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <stdexcept>

#include "sim/base/key_parts.h"
#include "sim/lowering/jitter.h"
#include "strategies/add_strategy.h"
#include "strategies/auto_options.h"
#include "strategies/data_parallel/data_parallel.h"
#include "strategies/elastic/elastic.h"
#include "strategies/filter_parallel/filter_parallel.h"
#include "strategies/framework_habits.h"
#include "strategies/hybrid/hybrid.h"
#include "strategies/hypergraph/hypergraph.h"
#include "strategies/pardnn/pardnn.h"
#include "strategies/pipeline/pipeline.h"
#include "strategies/single.h"
#include "strategies/strategy.h"

namespace convoy::inline strategies {
namespace {

/// Rows of programs that are built with this library.
struct Additions {
  std::vector<StrategyEntry> rows;
  bool closed = false;  ///< the registry is made
};
Additions& additions() {
  static Additions added;
  return added;
}

/// The registry without the key that all kinds have whose devices talk to each other.
std::vector<StrategyEntry> rows() {
  std::vector<StrategyEntry> table;
  for (const auto entry : {&single_entry, &data_parallel_entry, &elastic_entry, &filter_parallel_entry,
                           &hybrid_entry, &hypergraph_entry, &pardnn_entry, &pipeline_entry, &auto_entry})
    table.push_back(entry());
  table.insert(table.end(), additions().rows.begin(), additions().rows.end());
  return table;
}

/// Whether a strategy's devices talk to each other, so that read_strategy takes `transport` of it.
bool has_transport(const StrategyEntry& entry) { return entry.kind != "single" && entry.kind != "auto"; }

Key<Strategy> transport_key() {
  return {key_text("transport", "by strategy and framework", forms::name(library_names()),
                   "library that moves the bytes, over what the fabric speaks (docs/clusters.md)"),
          [](YamlMap& map, Strategy& strategy) {
            if (map.find("transport"))
              strategy.library = library_names()[map.choice("transport", library_names())];
          }};
}

void check_shared_parameters(const Strategy& strategy, const Model& model) {
  const std::string_view reason = strategy.refuses_shared_parameters();
  if (reason.empty()) return;
  for (const Layer& layer : model.layers)
    if (layer.shares())
      throw InputError(strategy.written_pos,
                       fmt::format("strategy: {}, and '{}' uses the parameters of '{}'", reason, layer.name,
                                   model.layers[static_cast<std::size_t>(layer.weights_of)].name));
}

}  // namespace

void add_strategy(StrategyEntry entry) {
  if (additions().closed)
    throw std::logic_error(
        fmt::format("strategy '{}' is added too late: the registry is in use", entry.kind));
  for (const StrategyEntry& row : rows())
    if (row.kind == entry.kind) throw std::logic_error(fmt::format("there is a strategy '{}'", entry.kind));
  additions().rows.push_back(std::move(entry));
}

const std::vector<StrategyEntry>& strategy_registry() {
  static const std::vector<StrategyEntry> registry = [] {
    additions().closed = true;
    std::vector<StrategyEntry> table = rows();
    for (StrategyEntry& entry : table)
      if (has_transport(entry)) entry.keys.push_back(transport_key().text);
    return table;
  }();
  return registry;
}

const StrategyEntry& strategy_entry(std::string_view kind) {
  for (const StrategyEntry& entry : strategy_registry())
    if (entry.kind == kind) return entry;
  throw std::out_of_range(fmt::format("no strategy '{}'", kind));
}

ReportedPlan Strategy::plan(const StrategyInput& input) const {
  check_shared_parameters(*this, input.graph.model);
  ReportedPlan planned = steady_plan(input);
  wait_for_the_last(planned.plan, input.machine, input.cost);
  return planned;
}

std::vector<RunPhase> Strategy::phases(const StrategyInput& input) const {
  ReportedPlan planned = plan(input);
  std::vector<RunPhase> phases;
  phases.push_back({0, static_cast<std::uint32_t>(input.machine.devices.size()), std::move(planned.plan),
                    std::move(planned.report)});
  return phases;
}

std::unique_ptr<Strategy> read_strategy(const YamlNode& written) {
  const YamlNode node = with_habits(written);
  YamlMap map(node, "strategy");
  std::vector<std::string> kinds;
  for (const StrategyEntry& entry : strategy_registry()) kinds.emplace_back(entry.kind);
  const std::size_t row = map.choice("kind", kinds);
  const StrategyEntry& entry = strategy_registry()[row];
  refuse_unknown_keys(map, names_of(entry.keys));
  std::unique_ptr<Strategy> strategy = entry.read(map);
  strategy->written_pos = map.pos();
  if (has_transport(entry)) transport_key().read(map, *strategy);
  map.finish();
  return strategy;
}

std::string default_library(const Strategy& strategy, Framework framework, const DeviceKind& kind) {
  const bool tensorflow = framework == Framework::tensorflow || framework == Framework::tensorflow1;
  if (strategy.uses_servers()) return tensorflow ? "grpc" : "zmq";
  return std::string(kind.library);
}

}  // namespace convoy::strategies
