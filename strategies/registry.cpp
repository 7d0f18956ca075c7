// SPDX-License-Identifier: MIT

#include "strategies/data_parallel.h"
#include "strategies/filter_parallel.h"
#include "strategies/single.h"
#include "strategies/strategy.h"

namespace convoy {

const std::vector<StrategyEntry>& strategy_registry() {
  static const std::vector<StrategyEntry> table{
      {"single",
       "one device does everything",
       {{"micro_batches", "1 | a number",
         "parts of the batch whose gradients are accumulated before the update"}},
       &read_single},
      {"data_parallel",
       "synchronous replicas that sum their gradients by all-reduce or on parameter servers",
       {{"sync", "all_reduce | parameter_server", "how gradients are summed; required"},
        {"shares", "equal | speed", "images a device: the same for all, or in proportion to its speed"},
        {"overlap", "true | false", "send gradients while backward goes on; false: all of them after it"},
        {"bucket", "25MiB | a size",
         "gradients sent as one message; without overlap all of them, unless given "
         "(not with sharding: tensor)"},
        {"algorithm", "ring | tree | halving_doubling | hierarchical | auto", "all_reduce: the algorithm"},
        {"rings", "mesh | in_order",
         "all_reduce: rings along NVLink cables, several where there are (NCCL 2), or "
         "one in the devices' order (NCCL 1)"},
        {"fidelity", "auto | chunk | fluid", "all_reduce: every message, or one flow an edge; auto chooses"},
        {"micro_batches", "1 | a number",
         "all_reduce: parts of a device's share, accumulated before sending"},
        {"servers", "1 | a number", "parameter_server: how many"},
        {"placement", "dedicated | colocated", "parameter_server: on hosts of their own, or on the nodes"},
        {"sharding", "tensor | even", "parameter_server: whole tensors a server, or every bucket cut evenly"},
        {"local_aggregation", "false | true",
         "parameter_server: each node sums its devices' gradients first"},
        {"pull", "as_ready | after_all",
         "parameter_server: parameters go back as they are updated, or when all "
         "of a server's are"},
        {"mode", "sync", "parameter_server: the server answers when all have pushed"}},
       &read_data_parallel},
      {"filter_parallel",
       "convolutions shared out by filters among all devices; a master does everything else",
       {{"shares", "probed | equal", "filters a device: by its speed on the layer, or the same for all"},
        {"master", "0 | a device's index", "the device that holds the parameters and does the rest"},
        {"overlap", "false | true", "the master computes its own filters while its messages are under way"}},
       &read_filter_parallel},
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
