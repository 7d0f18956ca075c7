// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <random>

#include "sim/base/memo.h"
#include "sim/costs/cost_model.h"
#include "sim/replay/folded_flows.h"
#include "sim/replay/lower_bound.h"
#include "sim/replay/replay.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

/// More messages than are listed anew each time, in several rounds, between devices that compute before and after.
/// @param even every device sends and receives in every round, so that all are alike where their links are
Plan random_plan(std::mt19937& random, std::uint32_t devices, Fidelity fidelity, bool even) {
  std::vector<EndpointId> all(devices);
  for (EndpointId e = 0; e < devices; ++e) all[e] = e;
  Pattern pattern{{all}, {hand::ring_round(devices, 0.1, 3)}};
  for (int r = 0; r < 8; ++r) {
    Round round{{}, {0.25}, 1};
    const std::uint32_t by = 1 + random() % (devices - 1);
    for (std::uint32_t i = 0; i < devices; ++i)
      if (even || random() % 8 > 0) round.pairs.emplace_back(i, (i + by) % devices);
    pattern.rounds.push_back(std::move(round));
  }
  Plan plan;
  plan.patterns = {std::move(pattern)};
  plan.communications = {{"sum", 0, 1e6, fidelity, 0}, {"sum", 0, 3e5, fidelity, 1e-5}};
  plan.roles = {
      hand::role("worker", all,
                 {hand::compute("before", 1), hand::message(Task::Kind::collective, "sum", 0, {0}, 1),
                  hand::compute("beside", 2), hand::message(Task::Kind::collective, "sum", 1, {2}, 1),
                  hand::compute("after", 1, {3})})};
  return plan;
}

/// All that the figures of results are made of.
std::vector<double> figures_of(const Plan& plan, const Machine& machine) {
  const CostModel cost{Software{}};
  const LowerBound bound = lower_bound(plan, machine, cost);
  const ReplayResult replayed = replay(plan, machine, cost, {});
  std::vector<double> figures{bound.step_time_s, bound.critical_compute_s, replayed.step_time_s,
                              replayed.comm_bytes, static_cast<double>(replayed.simulated_flows)};
  for (const EndpointUsage& usage : replayed.endpoints)
    for (const double each : {usage.compute_s, usage.exposed_comm_s, usage.hidden_comm_s, usage.comm_slack_s,
                              usage.end_s, usage.sent_bytes, usage.received_bytes})
      figures.push_back(each);
  for (const LinkUsage& usage : replayed.links)
    figures.push_back(usage.bytes), figures.push_back(usage.busy_s);
  return figures;
}

}  // namespace

TEST_CASE(
    "folded flows: replays and bounds that share them are what they are alone, whatever the links carry "
    "[law]") {
  int shared = 0, classes = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto devices = static_cast<std::uint32_t>(32 + random() % 8);
    const Fidelity fidelity = seed % 3 == 0 ? Fidelity::chunk : Fidelity::automatic;
    const Plan plan = random_plan(random, devices, fidelity, seed % 4 > 0);
    Machine machine = hand::star(devices, 1e9, 1e-6);
    std::size_t flows_before = 0;
    for (int change = 0; change < 6; ++change) {
      CAPTURE(change);
      // All as fast as each other, some slower than the others, all faster by one factor, back again, some faster.
      const double factor = change == 3 ? 4 : change == 4 ? 0.25 : 1;
      for (Link& link : machine.links) {
        link.bandwidth_Bps *= factor;
        if ((change == 1 || change == 2 || change == 5) && random() % 4 == 0)
          link.bandwidth_Bps = change == 1 ? 5e8 : 2e9;
      }
      const std::vector<double> together = figures_of(plan, machine);
      const FoldedFlows one = folded_flows(plan, machine), other = folded_flows(plan, machine);
      CHECK(&one.table() == &other.table());
      CHECK(&one.folding() == &other.folding());
      classes += one.folding().flow_class_count() != flows_before ? 1 : 0;
      flows_before = one.folding().flow_class_count();
      ++shared;
      const WithoutMemos without;
      CHECK(figures_of(plan, machine) == together);
      const FoldedFlows alone = folded_flows(plan, machine);
      CHECK(alone.folding().flow_class == one.folding().flow_class);
      CHECK(alone.folding().link_class == one.folding().link_class);
      CHECK(alone.one_by_one() == one.one_by_one());
    }
  }
  CHECK(shared == 72);
  CHECK(classes > 18);
}

TEST_CASE("folded flows: links that are all faster by one factor have those that there were") {
  std::mt19937 random(1);
  const Plan plan = random_plan(random, 40, Fidelity::chunk, true);
  Machine machine = hand::star(40, 1e9, 1e-6);
  for (LinkId link = 0; link < machine.links.size(); link += 3) machine.links[link].bandwidth_Bps = 5e8;
  const FoldedFlows before = folded_flows(plan, machine);
  for (Link& link : machine.links) link.bandwidth_Bps *= 1.7;
  const FoldedFlows faster = folded_flows(plan, machine);
  CHECK(&before.table() == &faster.table());
  CHECK(&before.folding() == &faster.folding());
  machine.links[1].bandwidth_Bps *= 2;
  CHECK(&before.table() != &folded_flows(plan, machine).table());
}

TEST_CASE(
    "folded flows: plans share them that differ in their programs, or in how soon all images are ready") {
  std::mt19937 random(1);
  Plan plan = random_plan(random, 40, Fidelity::automatic, true);
  const Machine machine = hand::star(40, 1e9, 1e-6);
  const FoldedFlows before = folded_flows(plan, machine);
  plan.roles[0].program = {hand::message(Task::Kind::collective, "sum", 0, {}, 1)};
  const FoldedFlows shorter = folded_flows(plan, machine);
  CHECK(&before.table() == &shorter.table());
  CHECK(&before.folding() == &shorter.folding());
  plan.communications[0].fidelity = Fidelity::chunk;
  const FoldedFlows one_by_one = folded_flows(plan, machine);
  CHECK(&before.table() == &one_by_one.table());
  CHECK(one_by_one.one_by_one() == std::vector<bool>{true});
  plan.input.emplace().interval_s.assign(40, 0.5);
  const FoldedFlows fed = folded_flows(plan, machine);
  CHECK(&before.table() != &fed.table());
  plan.input->interval_s.assign(40, 0.25);
  CHECK(&fed.table() == &folded_flows(plan, machine).table());
  plan.input->interval_s[3] = 0.5;
  const FoldedFlows apart = folded_flows(plan, machine);
  CHECK(&fed.table() != &apart.table());
  CHECK(apart.folding().endpoints.size() > fed.folding().endpoints.size());
  plan.roles[0].members.pop_back();
  CHECK(&apart.table() != &folded_flows(plan, machine).table());
}

TEST_CASE("folded flows: whether ranks go one by one is found for the links as they are") {
  // Of 32 devices the first 16 share their ways out in pairs. They are as fast as the others where these ways
  // carry twice as much.
  std::mt19937 random(1);
  const Plan plan = random_plan(random, 32, Fidelity::automatic, true);
  Machine machine = hand::star(32, 1e9, 1e-6);
  const auto router = std::make_shared<hand::TableRouter>();
  for (EndpointId from = 0; from < 32; ++from)
    for (EndpointId to = 0; to < 32; ++to)
      if (from != to)
        router->table[{from, to}] = {{from < 16 ? 2 * (from - from % 2) : 2 * from, 2 * to + 1}, 1e-6};
  machine.router = router;
  const auto with_shared_ways_of = [&](double bandwidth_Bps) {
    for (LinkId device = 0; device < 32; ++device) {
      machine.links[2 * device].bandwidth_Bps = device < 16 ? bandwidth_Bps : 1e9;
      machine.links[2 * device + 1].bandwidth_Bps = 1e10;
    }
    return folded_flows(plan, machine);
  };
  const FoldedFlows twice = with_shared_ways_of(2e9), thrice = with_shared_ways_of(3e9),
                    again = with_shared_ways_of(2e9);
  CHECK(&twice.table() == &thrice.table());
  CHECK(twice.one_by_one() == std::vector<bool>{false});
  CHECK(thrice.one_by_one() == std::vector<bool>{true});
  CHECK(again.one_by_one() == std::vector<bool>{false});
  CHECK(&twice.folding() == &again.folding());
  CHECK(&twice.folding() != &thrice.folding());
}
