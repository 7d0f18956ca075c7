// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/elastic/state_moves.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

using Pair = std::pair<EndpointId, EndpointId>;

/// Bytes by sender and receiver of the change into the second phase, with Adam: "0>1 24000, 1>2 24000".
std::string messages(const std::string& inner, const std::string& schedule) {
  TrainingOptions options;
  options.optimizer = Optimizer::adam;
  const lab::Experiment it = lab::Experiment::with_global_batch(
      lab::custom_model(8, 1000), lab::star(4, "1GB/s", "1us"),
      "{kind: elastic, inner: " + inner + ", schedule: " + schedule + "}", 16, options);
  const Plan traffic = it.phases()[1].change.traffic;
  std::map<Pair, double> bytes;
  for (const Pattern& pattern : traffic.patterns)
    for (const Round& round : pattern.rounds)
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        bytes[{from, to}] += std::round(fraction * traffic.communications[0].bytes);
      });
  std::string text;
  for (const auto& [of, sent] : bytes)
    text += fmt::format("{}{}>{} {}", text.empty() ? "" : ", ", of.first, of.second, sent);
  return text;
}

HeldStates held(const std::vector<KeptValues>& by_device) {
  HeldStates states;
  for (EndpointId e = 0; e < by_device.size(); ++e) {
    states.parameters.put(e, by_device[e].parameters);
    states.states.put(e, by_device[e].states);
  }
  return states;
}

}  // namespace

TEST_CASE("state moves: when a pipeline's stages change, layers go to where they are new, by hand") {
  // Stages of 4 of 8 layers, then of 2: 0-3 | 4-7, then 0 1 | 2 3 | 4 5 | 6 7. Adam: 12 bytes a
  // value, two layers of 1000.
  const std::string inner = "{kind: pipeline, micro_batches: 4, partition: even}";
  CHECK(messages(inner, "[{at_step: 0, devices: 2}, {at_step: 9, devices: 4}]") ==
        "0>1 24000, 1>2 24000, 1>3 24000");
  CHECK(messages(inner, "[{at_step: 0, devices: 4}, {at_step: 9, devices: 2}]") ==
        "1>0 24000, 2>1 24000, 3>1 24000");
}

TEST_CASE("state moves: of states that ZeRO shares out, each device gets its new share") {
  // One stage of 8 layers in one bucket, 8000 values. Shares of 4000, then of 2000; newcomers also get all
  // parameters (4 bytes each; 8 of states). Device 0 has the first two quarters of states, device 1 the others.
  const std::string inner =
      "{kind: pipeline, stages: 1, micro_batches: 1, inner: {kind: data_parallel, sync: all_reduce, zero: 1, "
      "overlap: false}}";
  CHECK(messages(inner, "[{at_step: 0, devices: 2}, {at_step: 9, devices: 4}]") ==
        "0>1 16000, 0>2 32000, 1>2 16000, 1>3 48000");
}

TEST_CASE("state moves: a value comes from the own host, else from whoever sends least") {
  const lab::Experiment lab(lab::custom_model(1, 1000), lab::star(1, "1GB/s", "1us"), "{kind: single}", 1);
  const ParameterElements elements(lab.graph());
  Machine machine = hand::devices(5);
  machine.devices[0].host = machine.devices[4].host = 0;
  for (EndpointId e = 1; e < 4; ++e) machine.devices[e].host = 1;
  const KeptValues all = elements.all(), none{};
  std::vector<Pair> pairs;
  for (const StateMove& move :
       moves_between(held({all, all, none, none, none}), held({all, all, all, all, all}), elements, machine))
    pairs.emplace_back(move.from, move.to);
  CHECK(pairs == std::vector<Pair>{{0, 4}, {1, 2}, {1, 3}});
  for (EndpointId e = 0; e < 5; ++e) machine.devices[e].host = e;
  pairs.clear();
  for (const StateMove& move : moves_between(held({all, all, none, none, none}),
                                             held({all, all, all, all, all}), elements, machine)) {
    pairs.emplace_back(move.from, move.to);
    CHECK(move.values.parameters == all.parameters);
  }
  CHECK(pairs == std::vector<Pair>{{0, 2}, {0, 4}, {1, 3}});
}
