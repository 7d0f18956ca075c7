// SPDX-License-Identifier: MIT

#include "strategies/data_parallel.h"
#include "strategies/single.h"
#include "strategies/strategy.h"

namespace convoy {

const std::vector<StrategyEntry>& strategy_registry() {
  static const std::vector<StrategyEntry> table{
      {"single", "one device, gradients accumulated over micro-batches", "micro_batches (default 1)",
       &read_single},
      {"data_parallel", "synchronous replicas: all-reduce or parameter servers",
       "sync: all_reduce | parameter_server; shares: equal (default) | speed; "
       "all_reduce: algorithm: ring (default) | tree | halving_doubling | hierarchical | auto, bucket "
       "(default 25MiB; "
       "all in one without overlap), overlap (default true), fidelity: auto (default) | chunk | fluid, "
       "micro_batches; "
       "parameter_server: servers (default 1), placement: dedicated (default) | colocated, sharding: tensor "
       "(default) | "
       "even, mode: sync, bucket (with sharding: even), overlap (default true), local_aggregation (default "
       "false)",
       &read_data_parallel},
  };
  return table;
}

std::unique_ptr<Strategy> read_strategy(const YamlNode& node) {
  YamlMap map(node, "strategy");
  std::vector<std::string> kinds;
  for (const StrategyEntry& entry : strategy_registry()) kinds.emplace_back(entry.kind);
  const std::size_t row = map.choice("kind", kinds);
  std::unique_ptr<Strategy> strategy = strategy_registry()[row].read(map);
  map.finish();
  return strategy;
}

}  // namespace convoy
