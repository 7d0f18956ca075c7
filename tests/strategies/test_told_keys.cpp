// SPDX-License-Identifier: MIT
// The keys that `convoy show keys` tells of operation networks, and those of elastic's lists, are those that
// their readers take.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/base/input_error.h"
#include "strategies/elastic/reconfigure.h"
#include "strategies/pardnn/networks/networks.h"
#include "strategies/strategy.h"
#include "tests/support/told_keys.h"

using namespace convoy;

namespace {

/// The error of reading a file of an operation network, or what it decides.
std::string network_said(const std::string& entries) {
  try {
    const OperationNetworkFile file = read_operation_network(parse_yaml("{" + entries + "}", "told.yaml"));
    double flops = 0;
    for (const OperationNetwork::Node& node : file.network.nodes) flops += node.work.flops_per_image;
    return fmt::format("{} {} {} {} {} {}", file.name, file.device.name, file.batch,
                       file.network.nodes.size(), file.network.parameters(), flops);
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Reads a network's mapping, given by its entries, in a file that is else right.
told::Reading network_within(const std::string& before, const std::string& after) {
  return [=](const std::string& entries) {
    return network_said("device: v100-sxm2-32gb, batch: 1, optimizer: sgd, network: {" + before + entries +
                        after + "}");
  };
}

/// The keys of a kind of network: those whose meaning says that they are its, and `kind`.
std::vector<KeyText> keys_of_network(const std::string& kind) {
  const std::vector<KeyText> file = operation_network_keys().keys;
  std::vector<KeyText> keys;
  for (const KeyText& key : told::parts_of(file, "network"))
    if (key.name == "kind" || ("; " + key.meaning).find("; " + kind + ":") != std::string::npos)
      keys.push_back(key);
  return keys;
}

std::string strategy_said(const std::string& entries) {
  try {
    return read_strategy(parse_yaml("{" + entries + "}", "told.yaml"))->label();
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("told keys: an operation network takes those that its table tells") {
  const std::string least =
      "device: v100-sxm2-32gb, batch: 1, optimizer: sgd, network: {kind: residual, blocks: [1, 1, 1, 1], "
      "widen: "
      "1}";
  CHECK(told::check(operation_network_keys().keys, least, &network_said) == 1);
  CHECK(network_said("device: v100-sxm2-32gb, batch: 1, optimiser: sgd, network: {}")
            .starts_with("told.yaml:1:36: optimiser: unknown key (did you mean 'optimizer'?)"));
}

TEST_CASE("told keys: every kind of operation network takes those that its table tells") {
  const std::string recurrent = "kind: recurrent, layers: 1, steps: 2, hidden: 4, vocabulary: 9",
                    characters =
                        "alphabet: 9, word_length: 4, embedding: 2, widths: [1], features: [3], highway: 1";
  told::check(keys_of_network("recurrent"), recurrent, network_within("", ""));
  told::check(keys_of_network("transformer"),
              "kind: transformer, layers: 1, heads: 2, length: 4, hidden: 4, feed_forward: 8, vocabulary: 9",
              network_within("", ""));
  CHECK(told::check(keys_of_network("residual"), "kind: residual, blocks: [1, 1, 1, 1], widen: 1",
                    network_within("", "")) == 2);
  told::check(keys_of_network("video"), "kind: video, layers: 1, hidden: 4", network_within("", ""));
  const std::vector<KeyText> keys = keys_of_network("recurrent");
  told::check(told::parts_of(keys, "characters"), characters,
              network_within(recurrent + ", characters: {", "}"));
  CHECK(network_within("", "")(recurrent + ", characters: {" + characters + "}") !=
        network_within("", "")(recurrent));
  CHECK(network_within(recurrent + ", characters: {", "}")(
            "alphabet: 9, word_length: 4, embedding: 2, widths: [1, 5], features: [3, 3], highway: 1")
            .ends_with("network.characters.widths: 5 is wider than a word of word_length"));
}

TEST_CASE("told keys: elastic's schedule and times take those that its table tells") {
  const std::vector<KeyText>& keys = strategy_entry("elastic").keys;
  const std::string inner = "kind: elastic, inner: {kind: pipeline}, ";
  const auto within = [&](const std::string& before, const std::string& after) {
    return [=](const std::string& entries) { return strategy_said(inner + before + entries + after); };
  };
  const std::vector<KeyText>& schedule = told::parts_of(keys, "schedule");
  CHECK(schedule.size() == 2);
  told::check(schedule, "at_step: 0, devices: 4", within("schedule: [{", "}]"));
  const std::vector<KeyText>& times = told::parts_of(keys, "times");
  CHECK(times.size() == texts_of(restart_time_keys()).size());
  CHECK(told::check(times, "", within("schedule: [{at_step: 0, devices: 4}], times: {", "}")) >= 5);
  CHECK(strategy_said(inner + "schedule: [{at_steps: 0, devices: 4}]")
            .starts_with(
                "told.yaml:1:54: strategy.schedule[0].at_steps: unknown key (did you mean 'at_step'?)"));
}
