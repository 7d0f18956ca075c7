// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <memory>

#include "sim/replay/fidelity.h"
#include "sim/replay/flows.h"
#include "tests/replay/replayed.h"

using namespace convoy;
using namespace convoy::replayed;
using Kind = Task::Kind;

TEST_CASE("a receive without a send blocks, and the error names it and what waits for it") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"data", 0, MB, Fidelity::automatic, 0}};
  plan.roles = {
      hand::role("from", {0}, {hand::compute("work", 1)}),
      hand::role("to", {1}, {hand::message(Kind::receive, "take", 0), hand::compute("work", 1, {0})})};
  CHECK(error_of(plan, hand::star(2, 1e9, 0)) ==
        "the plan cannot finish: 2 tasks are blocked: d1 'take' waits for its messages or its stream; d1 "
        "'work' "
        "waits for 'take'");
}

TEST_CASE("a collective that a member never joins blocks the others") {
  for (const Fidelity fidelity : {Fidelity::chunk, Fidelity::fluid}) {
    CAPTURE(static_cast<int>(fidelity));
    Plan plan = two_rank_ring(1, fidelity, 0);
    plan.roles[1].program.pop_back();
    CHECK(error_of(plan, hand::star(2, 1e9, 0)) ==
          "the plan cannot finish: 1 task is blocked: d0 'sum' waits for its messages or its stream");
  }
}

TEST_CASE("of many blocked tasks five are named") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"data", 0, MB, Fidelity::automatic, 0}};
  Role to = hand::role("to", {1}, {hand::message(Kind::receive, "take", 0)});
  for (TaskId t = 1; t < 8; ++t) to.program.push_back(hand::compute("work", 1, {t - 1}));
  plan.roles = {hand::role("from", {0}, {}), to};
  CHECK(error_of(plan, hand::star(2, 1e9, 0)) ==
        "the plan cannot finish: 8 tasks are blocked: d1 'take' waits for its messages or its stream; d1 "
        "'work' "
        "waits for 'take'; d1 'work' waits for 'work'; d1 'work' waits for 'work'; d1 'work' waits for "
        "'work'; ...");
}

TEST_CASE("an endpoint outside a communication's groups cannot use it") {
  Plan plan = two_rank_ring(1, Fidelity::fluid, 0);
  plan.roles.push_back(hand::role("outsider", {2}, {hand::message(Kind::collective, "sum", 0, {}, 1)}));
  CHECK(error_of(plan, hand::star(3, 1e9, 0)) == "'sum' is used by an endpoint outside its groups");
}

TEST_CASE("a plan that breaks its rules or leaks memory is refused") {
  Plan plan = two_rank_ring(1, Fidelity::fluid, 0);
  plan.roles[1].members = {0};
  CHECK(error_of(plan, hand::star(2, 1e9, 0)) == "plan: d0 has two roles");
  plan = two_rank_ring(1, Fidelity::fluid, 0);
  plan.roles[1].program[0].ops[0].allocates = {{MemoryClass::workspace, 7}};
  CHECK(error_of(plan, hand::star(2, 1e9, 0)) ==
        "role 'late' ends the step with 7 bytes more of workspace than it began with");
}

TEST_CASE("chunk or fluid: as asked, and by itself chunk on unequal ways, up to a million messages") {
  const auto one_by_one = [](std::uint32_t ranks, Fidelity fidelity, double odd_latency_s, double odd_Bps) {
    Machine machine = hand::star(ranks, 1e9, 10 * us);
    const auto router = std::make_shared<hand::TableRouter>();
    for (std::uint32_t i = 0; i < ranks; ++i)
      router->table[{i, (i + 1) % ranks}] = {{2 * i, 2 * ((i + 1) % ranks) + 1},
                                             i == 0 ? odd_latency_s : 10 * us};
    machine.router = router;
    machine.links[0].bandwidth_Bps = odd_Bps;
    Plan plan;
    plan.patterns = {{{{}}, {hand::ring_round(ranks, 1.0 / ranks, 2 * (ranks - 1))}}};
    for (EndpointId e = 0; e < ranks; ++e) plan.patterns[0].groups[0].push_back(e);
    plan.communications = {{"sum", 0, MB, fidelity, 0}};
    plan.roles = {
        hand::role("worker", plan.patterns[0].groups[0], {hand::message(Kind::collective, "sum", 0, {}, 1)})};
    return bool{ranks_go_one_by_one(plan, machine, expand_flows(plan, machine, Listing::always))[0]};
  };
  CHECK_FALSE(one_by_one(4, Fidelity::automatic, 10 * us, 1e9));
  CHECK(one_by_one(4, Fidelity::automatic, 11 * us, 1e9));
  CHECK(one_by_one(4, Fidelity::automatic, 10 * us, 5e8));
  CHECK_FALSE(one_by_one(4, Fidelity::automatic, 10 * us, 2e9));    // its down link is the narrow one
  CHECK(one_by_one(700, Fidelity::automatic, 11 * us, 1e9));        // 978,600 messages
  CHECK_FALSE(one_by_one(710, Fidelity::automatic, 11 * us, 1e9));  // 1,006,780
  CHECK(one_by_one(4, Fidelity::chunk, 10 * us, 1e9));
  CHECK(one_by_one(64, Fidelity::chunk, 11 * us, 1e9));
  CHECK_FALSE(one_by_one(4, Fidelity::fluid, 11 * us, 1e9));
}

TEST_CASE("sends and receives always go one by one, and a pattern has one fidelity") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"data", 0, MB, Fidelity::fluid, 0}};
  plan.roles = {hand::role("from", {0}, {hand::message(Kind::send, "give", 0)}),
                hand::role("to", {1}, {hand::message(Kind::receive, "take", 0)})};
  const Machine machine = hand::star(2, 1e9, 0);
  CHECK(ranks_go_one_by_one(plan, machine, expand_flows(plan, machine, Listing::always))[0]);

  Plan mixed = two_rank_ring(1, Fidelity::fluid, 0);
  mixed.communications.push_back({"again", 0, MB, Fidelity::chunk, 0});
  for (Role& role : mixed.roles) role.program.push_back(hand::message(Kind::collective, "again", 1, {}, 1));
  CHECK(error_of(mixed, machine) ==
        "communications of one pattern are to be replayed in different fidelities");
}
