// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/replay/replay.h"
#include "strategies/elastic/reconfigure.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

RestartTimes times_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "times");
  YamlMap map(node, "times");
  RestartTimes times;
  read_keys(restart_time_keys(), map, times);
  map.finish();
  return times;
}

constexpr const char* round_times =
    "{stop: 1s, process_start: 2s, framework_init: 3s, graph_build: 4s, communicator: 5s, "
    "communicator_per_device: 100ms, storage: 1MB/s}";

/// 1,000,000 parameters in one layer.
lab::Experiment million(int nodes) {
  return {lab::custom_model(1, 1'000'000), lab::star(nodes, "1GB/s", "1ms"), "{kind: single}", 1};
}

Machine machine_of(const lab::Experiment& lab) { return lab.machine(); }

}  // namespace

TEST_CASE("reconfigure: a restart is the sum of its parts, added up by hand") {
  const lab::Experiment lab = million(4);
  // SGD: 4 MB of weights are all the state; 4 s to write and 4 s to read at 1 MB/s
  CHECK(state_bytes(lab.graph()) == 4e6);
  const Reconfiguration change = restart(times_of(round_times), lab.graph(), 4);
  CHECK(change.pause_s == approx(1 + 4 + 2 + 3 + 4 + 4 + (5 + 4 * 0.1)));
  CHECK(change.preparation_s == 0);
  CHECK(change.traffic.roles.empty());
}

TEST_CASE(
    "reconfigure: given times of a checkpoint are taken instead of the storage's, and one device needs no "
    "communicator") {
  const lab::Experiment lab = million(4);
  const Reconfiguration change = restart(
      times_of("{stop: 0s, process_start: 0s, framework_init: 0s, graph_build: 0s, checkpoint_write: 7s, "
               "checkpoint_read: 20s}"),
      lab.graph(), 1);
  CHECK(change.pause_s == 27);
}

TEST_CASE("reconfigure: the interval of a pause is that of draws of the parts that are not stated") {
  const lab::Experiment lab = million(4);
  CHECK(restart(times_of(round_times), lab.graph(), 4).longer_s == 0);
  CHECK(restart(times_of(round_times), lab.graph(), 4).shorter_s == 0);
  // One part: a factor of two either way.
  const Reconfiguration one = restart(times_of("{process_start: 0s, graph_build: 0s, communicator: 0s, "
                                               "communicator_per_device: 0s, storage: 1GB/s}"),
                                      lab.graph(), 4);
  CHECK(one.longer_s == approx(4.3).epsilon(0.01));
  CHECK(one.shorter_s == approx(4.3 / 2).epsilon(0.01));
  // All parts: four of five sums of drawn ones lie within, but for the sum of squares, which is no sum of lognormals.
  constexpr unsigned seed = 29;
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const RestartTimes times;
  const Reconfiguration all = restart(times, lab.graph(), 4);
  int inside = 0;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    const auto drawn = [&](double time_s, double spread) {
      return time_s * std::exp(spread * normal(random));
    };
    const double pause_s = drawn(2 * 4e6 / times.storage_Bps, 0.54) + drawn(times.process_start_s, 0.54) +
                           drawn(times.framework_init_s, 0.54) + drawn(times.graph_build_s, 0.63) +
                           drawn(times.communicator(4), 0.54);
    inside += pause_s >= all.pause_s - all.shorter_s && pause_s <= all.pause_s + all.longer_s ? 1 : 0;
  }
  CHECK(inside > 0.75 * draws);
  CHECK(inside < 0.85 * draws);
}

TEST_CASE(
    "reconfigure: joining hides the newcomers' start, and its pause is a communicator and the broadcast") {
  const lab::Experiment lab = million(4);
  const Machine machine = machine_of(lab);
  const Reconfiguration change = overlapped(times_of(round_times), state_bytes(lab.graph()), machine, 2, 4);
  CHECK(change.preparation_s == 2 + 3 + 4);
  CHECK(change.pause_s == approx(5 + 4 * 0.1));
  CHECK(change.traffic_devices == 4);
  // two senders, two newcomers: one round of 1 ms + 4 MB / 1 GB/s
  CHECK(replay(change.traffic, machine, lab.cost(), {}).step_time_s == approx(0.001 + 0.004));
}

TEST_CASE("reconfigure: one holder and seven newcomers take three rounds of the broadcast") {
  const lab::Experiment lab = million(8);
  const Machine machine = machine_of(lab);
  const Reconfiguration change = overlapped(times_of(round_times), state_bytes(lab.graph()), machine, 1, 8);
  CHECK(change.traffic.patterns[0].rounds.size() == 3);
  CHECK(replay(change.traffic, machine, lab.cost(), {}).step_time_s == approx(3 * 0.005));
}

TEST_CASE(
    "reconfigure: a broadcast serves every newcomer once, from one who has the state, and own hosts first") {
  for (std::uint32_t devices = 2; devices <= 17; ++devices)
    for (std::uint32_t holders = 1; holders < devices; ++holders) {
      Machine machine = hand::devices(devices);
      for (std::uint32_t d = 0; d < devices; ++d) machine.devices[d].host = d / 2;
      const Pattern pattern = broadcast_to_newcomers(machine, holders);
      std::vector<int> has(devices, 0);
      std::fill(has.begin(), has.begin() + holders, 1);
      for (const Round& round : pattern.rounds) {
        std::vector<int> sends(devices, 0), gets(devices, 0);
        for (const auto& [from, to] : round.pairs) {
          REQUIRE(has[from]);
          REQUIRE(!has[to]);
          REQUIRE(++sends[from] == 1);
          REQUIRE(++gets[to] == 1);
        }
        for (std::uint32_t d = 0; d < devices; ++d) has[d] += gets[d];
      }
      REQUIRE(std::count(has.begin(), has.end(), 1) == devices);
      std::size_t rounds = 0;  // each doubles those that have it
      for (std::uint32_t holding = holders; holding < devices; holding *= 2) ++rounds;
      REQUIRE(pattern.rounds.size() == rounds);
      if (holders % 2 == 1) REQUIRE(pattern.rounds[0].pairs[0] == std::pair{holders - 1, holders});
    }
}

TEST_CASE("reconfigure: who leaves is agreed on by one value up and down a tree") {
  const lab::Experiment lab = million(4);
  const Machine machine = machine_of(lab);
  const Reconfiguration change = overlapped(times_of(round_times), state_bytes(lab.graph()), machine, 4, 1);
  CHECK(change.preparation_s == 0);
  CHECK(change.pause_s == 0);
  // 2 log2 4 rounds of 1 ms + 8 B / 1 GB/s
  CHECK(replay(change.traffic, machine, lab.cost(), {}).step_time_s == approx(4 * (0.001 + 8e-9)));
}

TEST_CASE("reconfigure: without times those of others hold, of a start 12.2 s to the rendezvous of two") {
  const RestartTimes times = times_of("{}");
  CHECK(times.process_start_s + times.framework_init_s + times.graph_build_s + times.communicator(2) ==
        approx(12.2).epsilon(0.001));
  CHECK(times.communicator(8) == approx(16.3 / 8).epsilon(0.005));
  CHECK(times.communicator(32) == approx(130.0 / 32).epsilon(0.005));
}

TEST_CASE("reconfigure: where devices have parts, they get what they lack at once, or nothing is sent") {
  const lab::Experiment lab = million(4);
  const Machine machine = machine_of(lab);
  const ParameterElements elements(lab.graph());
  const auto first = [](std::int64_t end) { return KeptValues{{{0, end}}, {{0, end}}}; };
  for (const auto& [from, to] : {std::pair{2U, 4U}, std::pair{4U, 2U}}) {
    const std::vector<StateMove> moves{{0, 0, 1, first(250'000)}, {0, 0, 3, first(500'000)}};
    const Reconfiguration change =
        redistributed(times_of(round_times), traffic_of(moves, elements, 4), machine, from, to);
    CHECK((change.preparation_s > 0) == (to > from));
    CHECK(change.pause_s == times_of(round_times).communicator(to));
    // 1 and 2 MB from the same device: 1 ms + 3 MB / (1 GB/s)
    CHECK(replay(change.traffic, machine, lab.cost(), {}).step_time_s == approx(0.004));
  }
  CHECK(
      redistributed(times_of(round_times), traffic_of({}, elements, 4), machine, 4, 2).traffic.roles.empty());
}
