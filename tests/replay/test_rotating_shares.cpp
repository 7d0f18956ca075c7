// SPDX-License-Identifier: MIT
// Shares of different sizes that go around rings, as one round and listed round by round.
#include <doctest/doctest.h>

#include <random>

#include "sim/plan/repetition.h"
#include "sim/plan/validate.h"
#include "tests/replay/replayed.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

/// Four ranks compute for different times, pass on shares of 10 MB and of 3 MB, and sum 2 MB beside them or after
/// them.
Plan plan_of(std::mt19937& random, bool beside) {
  constexpr std::uint32_t ranks = 4;
  Plan plan;
  Round round{{}, {}, ranks - 1};
  RotatingShares& rotation = round.rotation.emplace();
  rotation.ring = ranks;
  rotation.first = random() % 2 == 0 ? 0 : ranks - 1;
  double sum = 0;
  for (std::uint32_t i = 0; i < ranks; ++i) {
    round.pairs.emplace_back(i, (i + 1) % ranks);
    rotation.shares.push_back(static_cast<double>(random() % 5));
    sum += rotation.shares.back();
  }
  for (double& share : rotation.shares) share = sum > 0 ? share / sum : 0.25;
  for (std::size_t pair = 0; pair < ranks; ++pair)
    round.fractions.push_back((1 - rotation.share(pair, ranks - 1)) / (ranks - 1));
  plan.patterns = {{{{0, 1, 2, 3}}, {round}}, {{{0, 1, 2, 3}}, {hand::ring_round(ranks, 0.25, 6)}}};
  plan.communications = {{"pass on", 0, 10e6, Fidelity::fluid, 1e-5},
                         {"sum", 1, 2e6, Fidelity::fluid, 0},
                         {"pass on again", 0, 3e6, Fidelity::fluid, 0}};
  for (EndpointId e = 0; e < ranks; ++e) {
    plan.roles.push_back(
        hand::role("rank", {e},
                   {hand::compute("work", 1 + static_cast<double>(random() % 4)),
                    hand::message(Task::Kind::collective, "pass on", 0, {0}, 1),
                    hand::message(Task::Kind::collective, "sum", 1, {beside ? TaskId{0} : TaskId{1}}, 2),
                    hand::message(Task::Kind::collective, "pass on again", 2, {1, 2}, 1)}));
    plan.roles.back().streams = {"compute", "exchange", "sums"};
  }
  return plan;
}

}  // namespace

TEST_CASE(
    "rotating shares: one round takes what its rounds take one by one, alone and beside other messages") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const bool beside = seed % 2 == 0;
    const Plan plan = plan_of(random, beside);
    const Machine machine = hand::star(4, 1e9, 3e-6);
    CHECK_FALSE(lists_all(plan));
    const Plan listed = with_all_listed(plan);
    CHECK(lists_all(listed));
    const ReplayResult one = replayed::run(plan, machine), all = replayed::run(listed, machine);
    CHECK(one.step_time_s == approx(all.step_time_s).epsilon(1e-12));
    CHECK(one.comm_bytes == approx(all.comm_bytes).epsilon(1e-12));
    for (std::size_t e = 0; e < 4; ++e) {
      CHECK(one.endpoints[e].exposed_comm_s == approx(all.endpoints[e].exposed_comm_s).epsilon(1e-11));
      CHECK(one.endpoints[e].sent_bytes == approx(all.endpoints[e].sent_bytes).epsilon(1e-12));
      CHECK(one.endpoints[e].end_s == approx(all.endpoints[e].end_s).epsilon(1e-12));
    }
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      CHECK(one.links[l].bytes == approx(all.links[l].bytes).epsilon(1e-12));
      CHECK(one.links[l].busy_s == approx(all.links[l].busy_s).epsilon(1e-11));
    }
    for (std::size_t p = 0; p < machine.port_count; ++p)
      CHECK(one.port_busy_s[p] == approx(all.port_busy_s[p]).epsilon(1e-11));
    const ReplayResult unfolded = replayed::run(plan, machine, false);
    CHECK(one.step_time_s == approx(unfolded.step_time_s).epsilon(1e-12));
  }
}

TEST_CASE("rotating shares: pairs that are no rings, or too few repetitions, are refused") {
  std::mt19937 random(1);
  const Machine machine = hand::star(4, 1e9, 3e-6);
  Plan plan = plan_of(random, false);
  CHECK_NOTHROW(validate(plan, machine));
  std::swap(plan.patterns[0].rounds[0].pairs[1], plan.patterns[0].rounds[0].pairs[2]);
  CHECK_THROWS_WITH_AS(validate(plan, machine), doctest::Contains("are not of one ring"), std::logic_error);
  plan = plan_of(random, false);
  plan.patterns[0].rounds[0].repeat = 2;
  CHECK_THROWS_WITH_AS(validate(plan, machine), doctest::Contains("go around rings of 4 in 2 repetitions"),
                       std::logic_error);
}
