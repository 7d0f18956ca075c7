// SPDX-License-Identifier: MIT
// Flows and their paths, beside lists that are made plainly.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "sim/replay/flows.h"
#include "sim/replay/refine.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

constexpr std::uint32_t members_of_group = 5;

/// Rounds as pipelines have them: most messages of one come again in the next, in their order, some go and some come;
/// now and then the order is another, or the round says its latency.
std::vector<Round> drawn_rounds(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t count) { return static_cast<std::uint32_t>(random() % count); };
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  for (int i = 0; i < 9; ++i) all.emplace_back(below(members_of_group), below(members_of_group));
  std::vector<Round> rounds;
  for (std::uint32_t r = 0; r < 6; ++r) {
    if (below(4) == 0) std::shuffle(all.begin(), all.end(), random);
    Round round;
    for (const auto& pair : all)
      if (below(3) > 0) {
        round.pairs.push_back(pair);
        round.fractions.push_back(below(2) == 0 ? 0.5 : 0.25);
      }
    if (below(3) == 0) round.latency_s = below(2) == 0 ? 1e-6 : 2e-6;
    if (!round.pairs.empty()) rounds.push_back(round);
  }
  return rounds;
}

}  // namespace

TEST_CASE("messages of a group have one path if they are between the same two and say the same latency") {
  std::mt19937_64 random(1);
  const Machine machine = hand::star(2 * members_of_group, 1e9, 1e-6);
  std::size_t again = 0, flows = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan;
    plan.patterns = {{{{0, 1, 2, 3, 4}, {9, 8, 7, 6, 5}}, drawn_rounds(random)},
                     {{{4, 3, 2, 1, 0}}, drawn_rounds(random)}};
    const FlowTable table = expand_flows(plan, machine, Listing::where_needed);
    std::map<std::tuple<std::uint32_t, EndpointId, EndpointId, std::optional<double>>, std::uint32_t> paths;
    std::uint32_t f = 0, group = 0;
    for (const Pattern& pattern : plan.patterns)
      for (const std::vector<EndpointId>& members : pattern.groups) {
        for (std::uint32_t r = 0; r < pattern.rounds.size(); ++r)
          for (std::size_t k = 0; k < pattern.rounds[r].pairs.size(); ++k, ++f) {
            const auto [from, to] = pattern.rounds[r].pairs[k];
            const std::optional<double> latency_s = pattern.rounds[r].latency_s;
            const auto next = static_cast<std::uint32_t>(paths.size());
            const std::uint32_t path =
                paths.try_emplace({group, members[from], members[to], latency_s}, next).first->second;
            REQUIRE(f < table.flows.size());
            const Flow& flow = table.flows[f];
            CHECK(flow.path == path);
            CHECK(flow.round == r);
            CHECK(flow.fraction == pattern.rounds[r].fractions[k]);
            CHECK(table.path(flow).group == group);
            CHECK(table.path(flow).from == members[from]);
            CHECK(table.path(flow).to == members[to]);
            CHECK(table.path(flow).latency_s == latency_s.value_or(from == to ? 0 : 1e-6));
            CHECK(table.path(flow).link_count == (from == to ? 0 : 2));
          }
        ++group;
      }
    CHECK(f == table.flows.size());
    CHECK(paths.size() == table.paths.size());
    flows += f;
    again += f - paths.size();
  }
  CHECK(again > flows / 4);
}

TEST_CASE(
    "flows are of one class if their paths, rounds and fractions are, in whatever order paths have them") {
  const Machine machine = hand::star(4, 1e9, 1e-6);
  Plan plan;
  plan.patterns = {{{{0, 1, 2, 3}},
                    {{{{0, 1}, {2, 3}, {0, 1}, {2, 3}}, {0.5, 0.25, 0.25, 0.5}},
                     {{{2, 3}, {0, 1}, {0, 1}, {2, 3}}, {0.5}}}}};
  const FlowTable table = expand_flows(plan, machine, Listing::where_needed);
  REQUIRE(table.paths.size() == 2);
  const std::vector<std::uint32_t> alike{7, 7}, apart{8, 7};
  CHECK(flow_classes(table, alike) == std::vector<std::uint32_t>{0, 1, 1, 0, 2, 2, 2, 2});
  CHECK(flow_classes(table, apart) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 5, 4});
}
