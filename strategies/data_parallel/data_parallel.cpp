// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/data_parallel.h"

#include "strategies/data_parallel/all_reduce.h"
#include "strategies/data_parallel/gossip.h"
#include "strategies/data_parallel/parameter_server.h"
#include "strategies/framework_habits.h"

namespace convoy::inline strategies {
namespace {

enum class Sync : std::uint8_t { all_reduce, parameter_server, gossip };
const std::vector<std::string> sync_names{"all_reduce", "parameter_server", "gossip"};

std::unique_ptr<Strategy> read_data_parallel(YamlMap& map) {
  check_sync_is_there(map);
  switch (read_choice<Sync>(map, "sync", sync_names)) {
    case Sync::parameter_server:
      return read_parameter_server(map);
    case Sync::gossip:
      return read_gossip(map);
    case Sync::all_reduce:
      break;
  }
  return read_all_reduce(map);
}

}  // namespace

StrategyEntry data_parallel_entry() {
  KeyText sync = key_text("sync", "", forms::name(sync_names),
                          "how gradients are summed, or parameters averaged with neighbours; required");
  sync.required = true;
  std::vector<KeyText> keys{std::move(sync)};
  for (KeyText& text : texts_of_variants({{"all_reduce", all_reduce_key_texts()},
                                          {"parameter_server", parameter_server_key_texts()},
                                          {"gossip", gossip_key_texts()}}))
    keys.push_back(std::move(text));
  return {
      "data_parallel",
      "replicas that sum their gradients by all-reduce or on parameter servers, or average their parameters "
      "now and then or with their neighbours",
      std::move(keys),
      &read_data_parallel,
      "[{sync: all_reduce, algorithm: [ring, tree, halving_doubling, hierarchical], bucket: [5MiB, 25MiB, "
      "100MiB]}, "
      "{sync: all_reduce, micro_batches: [2, 4, 8, 16]}, {sync: all_reduce, zero: [1, 2, 3]}, "
      "{sync: parameter_server, servers: $nodes, placement: colocated, sharding: [tensor, even], "
      "local_aggregation: [false, true]}]",
      "sync",
      {{"all_reduce", "", all_reduce_key_texts()},
       {"parameter_server", "", parameter_server_key_texts()},
       {"gossip", "", gossip_key_texts()}}};
}

}  // namespace convoy::strategies
