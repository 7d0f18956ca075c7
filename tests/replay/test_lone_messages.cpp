// SPDX-License-Identifier: MIT
// Messages that have their links to themselves are foreseen, and nothing can tell it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/replay/fidelity.h"
#include "sim/replay/lone_messages.h"
#include "sim/replay/lower_bound.h"
#include "tests/laws/random_experiment.h"
#include "tests/replay/replayed.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"

using namespace convoy;
using namespace convoy::replayed;
using lab::Dice;

namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::vector<bool> lone(const Plan& plan, const Machine& machine, bool fold_equal = false) {
  const FlowTable table = expand_flows(plan, machine, Listing::always);
  const std::vector<bool> one_by_one = ranks_go_one_by_one(plan, machine, table);
  const Folding folding = fold(plan, machine, table, one_by_one, fold_equal);
  const CostModel cost(Precision::fp32);
  return has_lone_messages({plan, machine, cost, table, one_by_one, folding});
}

/// Collectives of four devices, one a round of pairs, each on a stream of its own where `streams` says so.
Plan collectives(const std::vector<Pairs>& rounds, const std::vector<int>& streams) {
  Plan plan;
  std::vector<Task> program;
  for (std::uint32_t p = 0; p < rounds.size(); ++p) {
    plan.patterns.push_back({{{0, 1, 2, 3}}, {{rounds[p], {1.0}, 2}}});
    plan.communications.push_back({"sum", p, MB, Fidelity::chunk, 0});
    program.push_back(hand::message(Task::Kind::collective, "sum", p, {}, streams[p]));
  }
  plan.roles = {{"rank", {0, 1, 2, 3}, {"compute", "one", "another"}, std::move(program), {}}};
  return plan;
}

const Pairs ring{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, exchange{{0, 1}, {1, 0}, {2, 3}, {3, 2}},
    gather{{0, 3}, {1, 3}};

/// A round in which every member sends at most one message, and receives at most one.
Round random_round(Dice& dice, std::uint32_t members) {
  Round round{{}, {}, static_cast<std::uint32_t>(dice.between(1, 4))};
  std::vector<std::uint32_t> to(members);
  for (std::uint32_t m = 0; m < members; ++m) to[m] = m;
  for (std::uint32_t m = members - 1; m > 0; --m)
    std::swap(to[m], to[static_cast<std::size_t>(dice.between(0, static_cast<int>(m)))]);
  for (std::uint32_t m = 0; m < members; ++m) {
    if (to[m] == m || dice.between(0, 5) == 0) continue;
    round.pairs.emplace_back(m, to[m]);
    round.fractions.push_back(dice.between(0, 9) == 0 ? 0 : 0.01 * dice.between(1, 100));
  }
  if (round.pairs.empty()) round = hand::ring_round(members, 0.5, 1);
  return round;
}

/// Collectives of all devices, or of each half of them, or of one half, between and beside tasks that compute. Some plans have a second stream for
/// them, and some a message beside them, so that a part of the collectives shares links.
Plan random_plan(Dice& dice, std::uint32_t devices) {
  Plan plan;
  const int streams = dice.between(0, 3) == 0 ? 2 : 1;
  std::vector<EndpointId> all, low, high;
  for (EndpointId e = 0; e < devices; ++e) {
    all.push_back(e);
    (2 * e < devices ? low : high).push_back(e);
  }
  std::vector<int> stream_of;
  for (std::uint32_t p = 0, patterns = static_cast<std::uint32_t>(dice.between(1, 3)); p < patterns; ++p) {
    Pattern pattern;
    pattern.groups = dice.one_of<std::vector<std::vector<EndpointId>>>({{all}, {low, high}, {high}});
    const auto members = static_cast<std::uint32_t>(pattern.groups.front().size());
    if (dice.coin()) pattern.rounds.push_back(hand::ring_round(members, 1.0 / members, 2 * (members - 1)));
    for (int rounds = dice.between(pattern.rounds.empty() ? 1 : 0, 4); rounds > 0; --rounds)
      pattern.rounds.push_back(random_round(dice, members));
    plan.patterns.push_back(std::move(pattern));
    stream_of.push_back(dice.between(1, streams));
  }
  const auto comms = static_cast<std::uint32_t>(dice.between(1, 5));
  for (CommId c = 0; c < comms; ++c)
    plan.communications.push_back(
        {"sum", static_cast<std::uint32_t>(dice.between(0, static_cast<int>(plan.patterns.size()) - 1)),
         MB * dice.between(0, 9), Fidelity::chunk, dice.coin() ? 20 * us : 0});
  for (const EndpointId e : all) {
    std::vector<Task> program;
    for (CommId c = 0; c < comms; ++c) {
      const auto& groups = plan.patterns[plan.communications[c].pattern].groups;
      if (std::none_of(groups.begin(), groups.end(), [&](const std::vector<EndpointId>& group) {
            return std::find(group.begin(), group.end(), e) != group.end();
          }))
        continue;
      const auto before = static_cast<TaskId>(program.size());
      program.push_back(hand::compute("work", 0.1 * dice.between(0, 40)));
      program.push_back(hand::message(Task::Kind::collective, "sum", c, {before},
                                      stream_of[plan.communications[c].pattern]));
      if (dice.coin()) program.push_back(hand::compute("beside", 0.1 * dice.between(1, 60)));
      if (dice.between(0, 4) == 0) program.push_back(hand::compute("after", 1, {before + 1}));
    }
    plan.roles.push_back({"rank", {e}, {"compute", "one", "another"}, std::move(program), {}});
  }
  if (dice.between(0, 3) == 0) {
    plan.patterns.push_back(messages(all, {{0, 1}}));
    plan.communications.push_back({"more", static_cast<std::uint32_t>(plan.patterns.size()) - 1, MB});
    plan.roles[0].program.push_back(hand::message(Task::Kind::send, "more", comms));
    plan.roles[1].program.push_back(hand::message(Task::Kind::receive, "more", comms));
  }
  return plan;
}

/// Sums of many differences of times are as exact as the times are.
void check_same_to_the_end(const ReplayResult& one, const ReplayResult& other) {
  const auto check = [&](double a_s, double b_s) { CHECK(std::abs(a_s - b_s) <= 1e-12 * other.step_time_s); };
  check(one.step_time_s, other.step_time_s);
  REQUIRE(one.endpoints.size() == other.endpoints.size());
  for (std::size_t e = 0; e < one.endpoints.size(); ++e) {
    CAPTURE(e);
    for (double EndpointUsage::*time_s :
         {&EndpointUsage::compute_s, &EndpointUsage::exposed_comm_s, &EndpointUsage::hidden_comm_s,
          &EndpointUsage::comm_slack_s, &EndpointUsage::end_s})
      check(one.endpoints[e].*time_s, other.endpoints[e].*time_s);
  }
  for (std::size_t l = 0; l < one.links.size(); ++l) {
    CAPTURE(l);
    check(one.links[l].busy_s, other.links[l].busy_s);
  }
  for (std::size_t p = 0; p < one.port_busy_s.size(); ++p) {
    CAPTURE(p);
    check(one.port_busy_s[p], other.port_busy_s[p]);
  }
  REQUIRE(one.timelines.size() == other.timelines.size());
  for (std::size_t t = 0; t < one.timelines.size(); ++t)
    for (std::size_t task = 0; task < one.timelines[t].tasks.size(); ++task) {
      check(one.timelines[t].tasks[task].start_s, other.timelines[t].tasks[task].start_s);
      check(one.timelines[t].tasks[task].end_s, other.timelines[t].tasks[task].end_s);
    }
}

}  // namespace

TEST_CASE("messages are alone where each link has an endpoint that takes one at a time, on one stream") {
  const Machine star = hand::star(4, 1e9, 1e-6);
  using Answers = std::vector<bool>;
  CHECK(lone(collectives({ring}, {1}), star) == Answers{true});
  CHECK(lone(collectives({ring}, {1}), star, true) == Answers{true});
  CHECK(lone(collectives({ring, exchange}, {1, 1}), star) == Answers{true, true});
  // Two streams may be on the same links at once; nobody knows when collectives without a stream begin.
  CHECK(lone(collectives({ring, exchange}, {1, 2}), star) == Answers{false, false});
  CHECK(lone(collectives({ring}, {Task::no_stream}), star) == Answers{false});
  // Two messages of a round on device 3's way in.
  CHECK(lone(collectives({gather}, {1}), star) == Answers{false});
  CHECK(lone(collectives({gather, {{0, 1}}}, {1, 1}), star) == Answers{false, true});
}

TEST_CASE(
    "messages of two senders and two receivers that meet on a link are not alone, whatever their rounds") {
  // Devices 0 and 1 share a way out, as devices of one host do, to 2 and 3. Messages of one round meet on it, and so may those of
  // two rounds.
  Machine machine = hand::star(4, 1e9, 1e-6);
  const auto router = std::make_shared<hand::TableRouter>();
  for (EndpointId from = 0; from < 4; ++from)
    for (EndpointId to = 0; to < 4; ++to)
      if (from != to) router->table[{from, to}] = {{from < 2 ? 0 : 2 * from, 2 * to + 1}, 1e-6};
  machine.router = router;
  CHECK(lone(collectives({{{0, 2}, {1, 3}}}, {1}), machine) == std::vector<bool>{false});
  Plan plan = collectives({{{0, 2}}}, {1});
  CHECK(lone(plan, machine) == std::vector<bool>{true});
  plan.patterns[0].rounds.push_back({{{1, 3}}, {1.0}, 1});
  CHECK(lone(plan, machine) == std::vector<bool>{false});
  plan.patterns[0].rounds.back().pairs = {{1, 2}};  // both to 2, which takes one after the other
  CHECK(lone(plan, machine) == std::vector<bool>{true});
}

TEST_CASE("foreseen messages do what messages do event by event, and what they do on SimGrid's links [law]") {
  std::size_t foreseen = 0, mixed = 0, bounded = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const auto devices = static_cast<std::uint32_t>(2 * dice.between(2, 5));
    Machine machine = hand::star(devices, 1e9, 10 * us * dice.between(0, 3));
    for (Link& link : machine.links)
      if (dice.coin()) link.bandwidth_Bps *= 0.01 * dice.between(50, 150);
    for (Device& device : machine.devices)
      if (dice.coin()) device.speed = 0.01 * dice.between(50, 150);
    const bool slow = dice.coin();  // collectives and computing slow each other
    if (slow) {
      machine.device_types[0].sms = 40;
      machine.transport.channels = 8;
    }
    const Plan plan = random_plan(dice, devices);
    const std::vector<bool> are_lone = lone(plan, machine);
    const auto count = std::count(are_lone.begin(), are_lone.end(), true);
    foreseen += count > 0;
    mixed += count > 0 && count < static_cast<std::ptrdiff_t>(are_lone.size());
    const CostModel cost(Precision::fp32);
    const ReplayResult quick = replay(plan, machine, cost, {});
    // A change after the step changes nothing, but where machines change nothing is foreseen.
    const double long_after_s = 1e3;
    check_same_to_the_end(
        quick,
        replay(plan, machine, cost,
               {true, NetworkModel::convoy, {{{long_after_s, 0, machine.links[0].bandwidth_Bps}}, {}, {}}}));
    const ReplayResult reference = replay(plan, machine, cost, {true, NetworkModel::simgrid});
    CHECK(quick.step_time_s == approx(reference.step_time_s).epsilon(1e-9));
    // A bound foresees all messages: it is the step where they are alone and slow nothing.
    const double bound_s = lower_bound(plan, machine, cost).step_time_s;
    CHECK(bound_s <= reference.step_time_s * (1 + 1e-9));
    if (slow || count < static_cast<std::ptrdiff_t>(are_lone.size())) continue;
    ++bounded;
    CHECK(bound_s == approx(reference.step_time_s).epsilon(1e-9));
  }
  CHECK(foreseen >= 140);
  CHECK(bounded >= 40);
  CHECK(mixed >= 20);
}
