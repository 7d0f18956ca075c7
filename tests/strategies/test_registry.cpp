// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/input_error.h"
#include "strategies/strategy.h"

using namespace convoy;

namespace {

std::string error_of(const std::string& yaml) {
  const YamlNode node = parse_yaml(yaml, "s.yaml");
  try {
    read_strategy(node);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string label_of(const std::string& yaml) { return read_strategy(parse_yaml(yaml, "s.yaml"))->label(); }

}  // namespace

TEST_CASE("a strategy without kind, or of an unknown one, is an error that lists what there is") {
  std::string kinds;
  for (const StrategyEntry& entry : strategy_registry())
    kinds += (kinds.empty() ? "" : ", ") + std::string(entry.kind);
  CHECK(error_of("{sync: all_reduce}") == "s.yaml:1:1: strategy: key 'kind' is missing");
  CHECK(error_of("{kind: data_paralel}") ==
        "s.yaml:1:8: strategy.kind: unknown value 'data_paralel' (did you mean 'data_parallel'?); allowed: " +
            kinds);
  CHECK(error_of("{kind: quantum}") ==
        "s.yaml:1:8: strategy.kind: unknown value 'quantum'; allowed: " + kinds);
  CHECK(error_of("{kind: [single]}") == "s.yaml:1:8: strategy.kind: expected a text, found a list");
  CHECK(error_of("ring") == "s.yaml:1:1: strategy: expected a mapping (key: value), found 'ring'");
}

TEST_CASE("unknown keys and values name what is allowed") {
  CHECK(error_of("{kind: single, micro_batch: 2}") ==
        "s.yaml:1:16: strategy.micro_batch: unknown key (did you mean 'micro_batches'?); known here: kind, "
        "micro_batches");
  CHECK(error_of("{kind: data_parallel, sync: allreduce}") ==
        "s.yaml:1:29: strategy.sync: unknown value 'allreduce' (did you mean 'all_reduce'?); allowed: "
        "all_reduce, "
        "parameter_server");
  CHECK(error_of("{kind: data_parallel}") == "s.yaml:1:1: strategy: key 'sync' is missing");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, algorithm: rings}") ==
        "s.yaml:1:52: strategy.algorithm: unknown value 'rings' (did you mean 'ring'?); allowed: ring, tree, "
        "halving_doubling, hierarchical, double_binary_tree, nccl, auto");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, fidelity: exact}") ==
        "s.yaml:1:51: strategy.fidelity: unknown value 'exact'; allowed: auto, chunk, fluid");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, shares: probed}") ==
        "s.yaml:1:49: strategy.shares: unknown value 'probed'; allowed: equal, speed");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, rings: cube}") ==
        "s.yaml:1:48: strategy.rings: unknown value 'cube'; allowed: mesh, in_order");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, servers: 2}") ==
        "s.yaml:1:41: strategy.servers: unknown key; known here: algorithm, bucket, compression, "
        "fidelity, kind, micro_batches, overlap, rings, shares, sync, transport, zero");
  CHECK(error_of("{kind: data_parallel, sync: parameter_server, placement: remote}") ==
        "s.yaml:1:58: strategy.placement: unknown value 'remote'; allowed: dedicated, colocated");
  CHECK(error_of("{kind: data_parallel, sync: parameter_server, mode: asynch}") ==
        "s.yaml:1:53: strategy.mode: unknown value 'asynch' (did you mean 'async'?); allowed: sync, async, ssp");
  CHECK(error_of("{kind: data_parallel, sync: parameter_server, sharding: tensors}") ==
        "s.yaml:1:57: strategy.sharding: unknown value 'tensors' (did you mean 'tensor'?); allowed: tensor, "
        "even");
}

TEST_CASE("values out of range, of the wrong type or without their unit are errors") {
  CHECK(error_of("{kind: single, micro_batches: 0}") ==
        "s.yaml:1:31: strategy.micro_batches: 0 is out of range: between 1 and 1000000 is allowed");
  CHECK(error_of("{kind: single, micro_batches: 2.5}") ==
        "s.yaml:1:31: strategy.micro_batches: expected a whole number, found '2.5'");
  CHECK(error_of("{kind: data_parallel, sync: parameter_server, servers: 0}") ==
        "s.yaml:1:56: strategy.servers: 0 is out of range: between 1 and 100000 is allowed");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, bucket: 0MB}") ==
        "s.yaml:1:49: strategy.bucket: '0MB' must be more than zero");
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, bucket: 25}")
            .starts_with("s.yaml:1:49: strategy.bucket: "));
  CHECK(error_of("{kind: data_parallel, sync: all_reduce, overlap: yes}") ==
        "s.yaml:1:50: strategy.overlap: expected true or false, found 'yes'");
  CHECK(
      error_of("{kind: data_parallel, sync: parameter_server, bucket: 1MB}") ==
      "s.yaml:1:55: strategy.bucket: has no meaning with sharding: tensor, which sends tensor by tensor; use "
      "sharding: even");
}

TEST_CASE("labels say what a table's reader must know") {
  CHECK(label_of("{kind: data_parallel, sync: all_reduce}") == "ring all-reduce");
  CHECK(label_of("{kind: data_parallel, sync: all_reduce, algorithm: tree, overlap: false}") ==
        "tree all-reduce, no overlap");
  CHECK(label_of("{kind: data_parallel, sync: parameter_server}") == "1 dedicated parameter server");
  CHECK(label_of("{kind: data_parallel, sync: parameter_server, servers: 3, placement: colocated, "
                 "local_aggregation: true, overlap: false}") ==
        "3 colocated parameter servers, local aggregation, no overlap");
}

TEST_CASE("dedicated servers ask for hosts of their own, whatever the nodes, and nobody else does") {
  const auto hosts = [](const std::string& yaml) {
    return read_strategy(parse_yaml(yaml, "s"))->dedicated_hosts(4);
  };
  CHECK(hosts("{kind: data_parallel, sync: parameter_server, servers: 3}") == 3);
  CHECK(hosts("{kind: data_parallel, sync: parameter_server, servers: 3, placement: colocated}") == 0);
  CHECK(hosts("{kind: data_parallel, sync: all_reduce}") == 0);
  CHECK(hosts("{kind: single}") == 0);
}

TEST_CASE("every row of the registry is read under its kind, and its keys are those that its reader knows") {
  REQUIRE(strategy_registry().size() >= 2);
  for (const StrategyEntry& entry : strategy_registry()) {
    CAPTURE(entry.kind);
    CHECK_FALSE(entry.summary.empty());
    for (const std::string sync : {"", ", sync: all_reduce", ", sync: parameter_server"}) {
      const std::string message = error_of(fmt::format("{{kind: {}{}, zzzzzzzz: 1}}", entry.kind, sync));
      const std::size_t known_at = message.find("known here: ");
      if (known_at == std::string::npos) continue;
      std::string known = message.substr(known_at + 12) + ", ";
      for (std::size_t at = 0, end; (end = known.find(", ", at)) != std::string::npos; at = end + 2) {
        const std::string key = known.substr(at, end - at);
        CAPTURE(key);
        CHECK((key == "kind" || std::any_of(entry.keys.begin(), entry.keys.end(),
                                            [&](const StrategyKey& k) { return k.name == key; })));
      }
    }
  }
}
