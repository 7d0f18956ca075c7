// SPDX-License-Identifier: MIT
// Which communications have their links for themselves.
#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include "sim/replay/link_conflicts.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

using Pair = std::pair<EndpointId, EndpointId>;

/// Pairs of devices of a star that exchange messages side by side, each way over a connection of its own.
std::vector<bool> alone(const std::vector<Pair>& pairs, bool on_one_stream = true) {
  Machine machine = hand::star(4, 1e9, 1e-6);
  const auto router = std::make_shared<hand::TableRouter>();
  for (EndpointId from = 0; from < 4; ++from)
    for (EndpointId to = 0; to < 4; ++to)
      if (from != to) router->table[{from, to}] = {{2 * from, 2 * to + 1}, 1e-6, {from, to}, 1e8};
  machine.router = router;
  Plan plan;
  for (std::uint32_t p = 0; p < pairs.size(); ++p) {
    const auto& [a, b] = pairs[p];
    plan.patterns.push_back({{{a, b}}, {hand::ring_round(2, 0.5, 2)}});
    plan.communications.push_back({"sum", p, 1e6, Fidelity::fluid, 0});
    const int stream = on_one_stream ? 1 : static_cast<int>(p);
    plan.roles.push_back(
        hand::role("pair", {a, b}, {hand::message(Task::Kind::collective, "sum", p, {}, stream)}));
  }
  return has_links_for_itself(plan, machine, expand_flows(plan, machine, Listing::where_needed));
}

}  // namespace

TEST_CASE("a group has its links for itself unless others cross them, or the other way through their ports") {
  const std::vector<bool> both{true, true}, neither{false, false};
  CHECK(alone({{0, 1}, {2, 3}}) == both);
  CHECK(alone({{2, 3}, {0, 1}}) == both);
  CHECK(alone({{0, 1}, {1, 2}}) == neither);
  // The same ranks on one stream follow one another.
  CHECK(alone({{0, 1}, {0, 1}}) == both);
  CHECK(alone({{0, 1}, {0, 1}}, false) == neither);
}

TEST_CASE("collectives of the same ranks on different streams follow one another where every program waits") {
  // Two sums on streams of their own; between them a task, or not; of one of both ranks, or of both.
  const auto alone_where = [](bool first_waits, bool second_waits) {
    const Machine machine = hand::star(2, 1e9, 1e-6);
    Plan plan;
    for (std::uint32_t p = 0; p < 2; ++p) {
      plan.patterns.push_back({{{0, 1}}, {hand::ring_round(2, 0.5, 2)}});
      plan.communications.push_back({"sum", p, 1e6, Fidelity::fluid, 0});
    }
    for (const bool waits : {first_waits, second_waits}) {
      const auto member = static_cast<EndpointId>(plan.roles.size());
      std::vector<Task> program{
          hand::message(Task::Kind::collective, "sum", 0, {}, 1),
          hand::compute("work", 1, waits ? std::vector<TaskId>{0} : std::vector<TaskId>{}),
          hand::message(Task::Kind::collective, "sum", 1, {1}, 2)};
      plan.roles.push_back(hand::role("rank", {member}, std::move(program)));
      plan.roles.back().streams.push_back("another");
    }
    return has_links_for_itself(plan, machine, expand_flows(plan, machine, Listing::where_needed));
  };
  const std::vector<bool> both{true, true}, neither{false, false};
  CHECK(alone_where(true, true) == both);
  CHECK(alone_where(true, false) == neither);
  CHECK(alone_where(false, true) == neither);
  CHECK(alone_where(false, false) == neither);
}
