// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/input_error.h"
#include "strategies/strategy.h"

using namespace convoy;

namespace {

std::string registry_error(const std::string& yaml) {
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
  CHECK(registry_error("{sync: all_reduce}") ==
        "s.yaml:1:1: strategy: key 'kind' is missing; allowed: " + kinds);
  CHECK(registry_error("{kind: data_paralel}") ==
        "s.yaml:1:8: strategy.kind: unknown value 'data_paralel' (did you mean 'data_parallel'?); allowed: " +
            kinds);
  CHECK(registry_error("{kind: quantum}") ==
        "s.yaml:1:8: strategy.kind: unknown value 'quantum'; allowed: " + kinds);
  CHECK(registry_error("{kind: [single]}") == "s.yaml:1:8: strategy.kind: expected a text, found a list");
  CHECK(registry_error("ring") == "s.yaml:1:1: strategy: expected a mapping (key: value), found 'ring'");
}

TEST_CASE("unknown keys and values name what is allowed") {
  CHECK(registry_error("{kind: single, micro_batch: 2}") ==
        "s.yaml:1:16: strategy.micro_batch: unknown key (did you mean 'micro_batches'?); known here: kind, "
        "micro_batches");
  CHECK(registry_error("{kind: data_parallel, sync: allreduc}") ==
        "s.yaml:1:29: strategy.sync: unknown value 'allreduc' (did you mean 'all_reduce'?); allowed: "
        "all_reduce, parameter_server, gossip");
  CHECK(registry_error("{kind: data_parallel}") ==
        "s.yaml:1:1: strategy: key 'sync' is missing; allowed: all_reduce, parameter_server, gossip");
  CHECK(registry_error("{kind: data_parallel, snyc: all_reduce}")
            .starts_with("s.yaml:1:23: strategy.snyc: unknown key (did you mean 'sync'?); known here: "));
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, algorithm: rings}") ==
        "s.yaml:1:52: strategy.algorithm: unknown value 'rings' (did you mean 'ring'?); allowed: ring, tree, "
        "halving_doubling, hierarchical, double_binary_tree, nccl, auto, {file: my.yaml}");
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, fidelity: exact}") ==
        "s.yaml:1:51: strategy.fidelity: unknown value 'exact'; allowed: auto, chunk, fluid");
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, shares: probed}") ==
        "s.yaml:1:49: strategy.shares: unknown value 'probed'; allowed: equal, speed");
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, rings: cube}") ==
        "s.yaml:1:48: strategy.rings: unknown value 'cube'; allowed: mesh, in_order");
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, servers: 2}") ==
        "s.yaml:1:41: strategy.servers: unknown key; known here: algorithm, bucket, compression, cycle, "
        "fidelity, first_bucket, kind, launches, like, local_from, micro_batches, overlap, rings, shares, "
        "slow_momentum, "
        "sum_in_hosts, sync, "
        "sync_every, transport, zero");
  CHECK(registry_error("{kind: data_parallel, sync: parameter_server, placement: remote}") ==
        "s.yaml:1:58: strategy.placement: unknown value 'remote'; allowed: colocated, dedicated");
  CHECK(registry_error("{kind: data_parallel, sync: parameter_server, mode: asynch}") ==
        "s.yaml:1:53: strategy.mode: unknown value 'asynch' (did you mean 'async'?); allowed: sync, async, "
        "ssp");
  CHECK(registry_error("{kind: data_parallel, sync: parameter_server, sharding: tensors}") ==
        "s.yaml:1:57: strategy.sharding: unknown value 'tensors' (did you mean 'tensor'?); allowed: tensor, "
        "even");
}

TEST_CASE("values out of range, of the wrong type or without their unit are errors") {
  CHECK(registry_error("{kind: single, micro_batches: 0}") ==
        "s.yaml:1:31: strategy.micro_batches: 0 is out of range: between 1 and 1000000 is allowed");
  CHECK(registry_error("{kind: single, micro_batches: 2.5}") ==
        "s.yaml:1:31: strategy.micro_batches: expected a whole number, found '2.5'");
  CHECK(registry_error("{kind: data_parallel, sync: parameter_server, servers: 0}") ==
        "s.yaml:1:56: strategy.servers: 0 is out of range: between 1 and 100000 is allowed");
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, bucket: 0MB}") ==
        "s.yaml:1:49: strategy.bucket: '0MB' must be more than zero");
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, bucket: 25}")
            .starts_with("s.yaml:1:49: strategy.bucket: "));
  CHECK(registry_error("{kind: data_parallel, sync: all_reduce, overlap: yes}") ==
        "s.yaml:1:50: strategy.overlap: expected true or false, found 'yes'");
  CHECK(registry_error("{kind: data_parallel, sync: parameter_server, bucket: 1MB}") ==
        "s.yaml:1:55: strategy.bucket: goes with sharding: even only; leave it out");
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

namespace {

/// The least that each kind needs, in order; of data_parallel each way to sum or to average.
using Entries = std::vector<std::pair<std::string, std::string>>;
const std::vector<Entries> least{{{"kind", "single"}},
                                 {{"kind", "data_parallel"}, {"sync", "all_reduce"}},
                                 {{"kind", "data_parallel"}, {"sync", "parameter_server"}},
                                 {{"kind", "data_parallel"}, {"sync", "gossip"}},
                                 {{"kind", "elastic"},
                                  {"inner", "{kind: data_parallel, sync: all_reduce}"},
                                  {"schedule", "[{at_step: 0, devices: 1}]"}},
                                 {{"kind", "filter_parallel"}},
                                 {{"kind", "hybrid"}, {"conv", "batch"}},
                                 {{"kind", "hypergraph"}},
                                 {{"kind", "pardnn"}},
                                 {{"kind", "pipeline"}}};

const std::string& kind_of(const Entries& mapping) { return mapping.front().second; }

/// The mapping with one more key, or another value of one that it has.
std::string with(Entries mapping, const std::string& key, const std::string& value) {
  std::erase_if(mapping, [&](const auto& entry) { return entry.first == key; });
  mapping.emplace_back(key, value);
  std::string text;
  for (const auto& [name, of] : mapping) text += fmt::format("{}{}: {}", text.empty() ? "{" : ", ", name, of);
  return text + "}";
}
std::string as_it_is(const Entries& mapping) { return with(mapping, "kind", kind_of(mapping)); }

}  // namespace

TEST_CASE("the keys that the registry tells of a kind are those that its reader takes") {
  std::size_t kinds = 0;
  for (const StrategyEntry& entry : strategy_registry()) {
    CAPTURE(entry.kind);
    CHECK_FALSE(entry.summary.empty());
    if (entry.kind == "auto") continue;
    ++kinds;
    std::string known;
    for (const Entries& mapping : least) {
      if (kind_of(mapping) != entry.kind) continue;
      REQUIRE(registry_error(as_it_is(mapping)) == "no error");
      const std::string message = registry_error(with(mapping, "zzzzzzzz", "1"));
      REQUIRE(message.find("known here: ") != std::string::npos);
      std::string listed = message.substr(message.find("known here: ") + 12);
      if (listed.ends_with(" more")) listed.resize(listed.rfind(" and "));  // a long list is cut
      known += listed + ", ";
    }
    for (std::size_t at = 0, end; (end = known.find(", ", at)) != std::string::npos; at = end + 2) {
      const std::string key = known.substr(at, end - at);
      CAPTURE(key);
      CHECK((key == "kind" || find_key(entry.keys, key) != nullptr));
    }
    for (const KeyText& key : entry.keys) {
      CAPTURE(key.name);
      CHECK_FALSE(key.meaning.empty());
      CHECK_FALSE(key.values.empty());
      CHECK(std::any_of(least.begin(), least.end(), [&](const Entries& mapping) {
        const std::string message = registry_error(with(mapping, key.name, "[[]]"));
        return kind_of(mapping) == entry.kind && message.find("unknown key") == std::string::npos &&
               message.find("strategy." + key.name) != std::string::npos;
      }));
    }
  }
  CHECK(kinds == 8);
}

TEST_CASE("every name that the registry tells of a key is one that its reader knows") {
  std::size_t names = 0;
  for (const Entries& mapping : least)
    for (const KeyText& key : strategy_entry(kind_of(mapping)).keys)
      for (const std::string& name : key.choices) {
        const std::string message = registry_error(with(mapping, key.name, name));
        CAPTURE(as_it_is(mapping));
        CAPTURE(key.name);
        CAPTURE(name);
        CHECK(message.find("unknown value") == std::string::npos);
        CHECK(message.find("expected") == std::string::npos);
        CHECK(key.values.find(name) != std::string::npos);
        ++names;
      }
  CHECK(names > 60);
}

TEST_CASE("a default that the registry tells, written out, changes nothing that a label says") {
  std::size_t written = 0;
  for (const Entries& mapping : least)
    for (const KeyText& key : strategy_entry(kind_of(mapping)).keys) {
      const std::string usual = key.values.substr(0, key.values.find(" | "));
      const std::string text = with(mapping, key.name, usual);
      const bool is_default = usual.find_first_of(" {") == std::string::npos && !usual.starts_with("batch") &&
                              !key.meaning.ends_with("required");
      if (!is_default || registry_error(text).find("unknown key") != std::string::npos ||
          registry_error(text).find("goes with") != std::string::npos)
        continue;
      CAPTURE(text);
      CHECK(registry_error(text) == "no error");
      CHECK(label_of(text) == label_of(as_it_is(mapping)));
      ++written;
    }
  CHECK(written > 40);
}
