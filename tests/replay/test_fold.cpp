// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/replay/fold.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

struct Folded {
  FlowTable table;
  Folding folding;
};

Folded fold_of(const Plan& plan, const Machine& machine, bool one_by_one, bool really = true) {
  Folded result{expand_flows(plan, machine, Listing::always), {}};
  result.folding =
      fold(plan, machine, result.table, std::vector<bool>(plan.patterns.size(), one_by_one), really);
  return result;
}

Plan ring_plan(std::uint32_t ranks) {
  Plan plan;
  std::vector<EndpointId> members(ranks);
  for (EndpointId e = 0; e < ranks; ++e) members[e] = e;
  plan.patterns = {{{members}, {hand::ring_round(ranks, 0.25, 2)}}};
  plan.communications = {{"ring", 0, 1e6, Fidelity::automatic, 0}};
  plan.roles = {hand::role("worker", members, {hand::message(Task::Kind::collective, "ring", 0, {}, 1)})};
  return plan;
}

using Counts = std::map<std::uint32_t, int>;

/// Checks that all things of one class have equal descriptions.
template <class Describe>
void check_alike(const std::vector<std::uint32_t>& class_of, Describe describe) {
  std::map<std::uint32_t, std::decay_t<decltype(describe(0u))>> known;
  for (std::uint32_t i = 0; i < class_of.size(); ++i) {
    if (class_of[i] == Folding::none) continue;
    const auto description = describe(i);
    const auto [it, fresh] = known.emplace(class_of[i], description);
    CAPTURE(i);
    CHECK(it->second == description);
  }
}

/// Checks that classes are numbered by first appearance, and calls `check` with the first of each.
template <class Check>
void check_first_of_each(const std::vector<std::uint32_t>& class_of, std::size_t classes, Check check) {
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < class_of.size(); ++i) {
    CHECK(class_of[i] <= next);
    if (class_of[i] == next) check(i, next++);
  }
  CHECK(next == classes);
}

/// The definition of an equitable partition, item by item (see Folding).
void check_equitable(const Plan& plan, const Machine& machine, const Folded& folded, bool one_by_one) {
  const auto& [table, folding] = folded;
  std::vector<int> role_of(machine.endpoint_count(), -1);
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const EndpointId e : plan.roles[r].members) role_of[e] = static_cast<int>(r);

  check_alike(folding.endpoint_class, [&](std::uint32_t e) {
    Counts sent, received, groups;
    for (std::size_t f = 0; one_by_one && f < table.flows.size(); ++f) {
      if (table.path(table.flows[f]).from == e) ++sent[folding.flow_class[f]];
      if (table.path(table.flows[f]).to == e) ++received[folding.flow_class[f]];
    }
    for (std::size_t g = 0; g < table.groups.size(); ++g) {
      const std::vector<EndpointId>& members =
          plan.patterns[table.groups[g].pattern].groups[table.groups[g].index];
      if (std::count(members.begin(), members.end(), e) > 0) ++groups[folding.group_class[g]];
    }
    const double speed = e < machine.devices.size() ? machine.devices[e].speed : 0;
    return std::tuple{role_of[e], speed, sent, received, groups};
  });
  check_alike(folding.flow_class, [&](std::uint32_t f) {
    const Flow& flow = table.flows[f];
    Counts links;
    for (const LinkId link : table.route(flow)) ++links[folding.link_class[link]];
    const auto end = [&](EndpointId e) { return one_by_one ? folding.endpoint_class[e] : 0; };
    const FlowPath& path = table.path(flow);
    return std::tuple{table.groups[path.group].pattern, flow.round,     flow.fraction, path.latency_s, links,
                      folding.group_class[path.group],  end(path.from), end(path.to)};
  });
  check_alike(folding.link_class, [&](std::uint32_t l) {
    Counts flows;
    for (std::size_t f = 0; f < table.flows.size(); ++f)
      for (const LinkId link : table.route(table.flows[f]))
        if (link == l) ++flows[folding.flow_class[f]];
    return std::tuple{machine.links[l].bandwidth_Bps, flows};
  });
  check_alike(folding.group_class, [&](std::uint32_t g) {
    const FlowGroup& group = table.groups[g];
    Counts members, flows;
    for (const EndpointId e : plan.patterns[group.pattern].groups[group.index])
      ++members[folding.endpoint_class[e]];
    for (std::uint32_t f = group.first_flow; f < group.first_flow + group.flow_count; ++f)
      ++flows[folding.flow_class[f]];
    return std::tuple{group.pattern, members, flows};
  });
  // A flow class uses each link class on its way as often as its flows cross any one link of that class.
  for (std::uint32_t f = 0; f < table.flows.size(); ++f) {
    Counts expected, given;
    for (const LinkId link : table.route(table.flows[f])) {
      int crossings = 0;
      for (std::uint32_t other = 0; other < table.flows.size(); ++other)
        if (folding.flow_class[other] == folding.flow_class[f])
          for (const LinkId crossed : table.route(table.flows[other])) crossings += crossed == link;
      expected[folding.link_class[link]] = crossings;
    }
    for (const LinkUse& use : folding.route(folding.flow_class[f]))
      given[use.link] += static_cast<int>(use.multiplicity);
    CHECK(given == expected);
  }
  for (std::size_t c = 0; c < folding.endpoints.size(); ++c) {
    CHECK(folding.endpoint_class[folding.endpoints[c]] == c);
    CHECK(static_cast<int>(folding.endpoint_role[c]) == role_of[folding.endpoints[c]]);
  }
  check_first_of_each(folding.flow_class, folding.flow_class_count(), [&](std::uint32_t f, std::uint32_t c) {
    CHECK(folding.flow(table, c).path == table.flows[f].path);
    CHECK(&folding.path(table, c) == &table.path(table.flows[f]));
    CHECK(folding.flow(table, c).round == table.flows[f].round);
  });
  for (std::size_t c = 0; c < folding.links.size(); ++c) CHECK(folding.link_class[folding.links[c]] == c);
  for (std::size_t c = 0; c < folding.groups.size(); ++c) CHECK(folding.group_class[folding.groups[c]] == c);
}

struct RandomCase {
  Machine machine;
  Plan plan;
  std::size_t orbits;  ///< of endpoints
};

/// A plan on a machine that look the same from each of `turns` sides: thing (i, s) is thing i of side s, and
/// all that side 0 does to side d, side s does to side s + d.
RandomCase random_case(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const std::uint32_t turns = 1 + below(5), kinds = 1 + below(3), link_kinds = 1 + below(3);
  const std::uint32_t devices = turns * kinds;
  RandomCase result{hand::devices(devices), {}, kinds};
  Machine& machine = result.machine;
  for (std::uint32_t l = 0; l < link_kinds; ++l) {
    const double bandwidth_Bps = 1e9 * (1 + below(2));
    for (std::uint32_t s = 0; s < turns; ++s)
      machine.links.push_back({fmt::format("l{}-{}", l, s), bandwidth_Bps, 0, 0});
  }
  const auto device = [&](std::uint32_t i, std::uint32_t s) { return i * turns + s % turns; };
  for (std::uint32_t i = 0; i < kinds; ++i) {
    const double speed = below(2) == 0 ? 1.0 : 0.5;
    for (std::uint32_t s = 0; s < turns; ++s) machine.devices[device(i, s)].speed = speed;
  }
  const auto router = std::make_shared<hand::TableRouter>();
  Pattern pattern;
  pattern.groups.emplace_back();
  for (EndpointId e = 0; e < devices; ++e) pattern.groups[0].push_back(e);
  for (std::uint32_t r = 0, rounds = 1 + below(2); r < rounds; ++r) {
    Round& round = pattern.rounds.emplace_back();
    std::set<std::pair<EndpointId, EndpointId>> taken;
    for (std::uint32_t k = 0, count = 1 + below(4); k < count; ++k) {
      const std::uint32_t from = below(kinds), to = below(kinds), shift = below(turns);
      if (device(from, 0) == device(to, shift) || !taken.emplace(device(from, 0), device(to, shift)).second)
        continue;
      std::vector<std::pair<std::uint32_t, std::uint32_t>> way;
      for (std::uint32_t hop = 0, hops = below(4); hop < hops; ++hop)
        way.emplace_back(below(link_kinds), below(turns));
      const double fraction = below(2) == 0 ? 1.0 : 0.5, latency_s = 1e-6 * below(2);
      for (std::uint32_t s = 0; s < turns; ++s) {
        round.pairs.emplace_back(device(from, s), device(to, shift + s));
        round.fractions.push_back(fraction);
        Route route{{}, latency_s};
        for (const auto& [link, side] : way) route.links.push_back(link * turns + (side + s) % turns);
        router->table.try_emplace({device(from, s), device(to, shift + s)}, route);
      }
    }
  }
  machine.router = router;
  result.plan.patterns = {pattern};
  result.plan.communications = {{"exchange", 0, 1e6, Fidelity::automatic, 0}};
  result.plan.roles = {hand::role("worker", pattern.groups[0], {})};
  return result;
}

}  // namespace

TEST_CASE("an equal ring is one endpoint, one flow and one link, crossed once") {
  for (const bool one_by_one : {false, true}) {
    const Folding folding = fold_of(ring_plan(6), hand::star(6, 1e9, 1e-6), one_by_one).folding;
    CHECK(folding.endpoints == std::vector<EndpointId>{0});
    CHECK(folding.flow_class_count() == 1);
    CHECK(folding.links == std::vector<LinkId>{0});  // up and down links are alike: one flow crosses each
    REQUIRE(folding.routes[0].size() == 1);
    CHECK(folding.routes[0][0].multiplicity == 1);
    CHECK(folding.endpoint_class[7] == Folding::none);  // a host without a role
  }
}

TEST_CASE("workers that push to one server are one flow, four times on the server's link") {
  const Machine machine = hand::star(5, 1e9, 1e-6);
  Plan plan;
  plan.patterns = {{{{0, 1, 2, 3, 9}}, {{{{0, 4}, {1, 4}, {2, 4}, {3, 4}}, {1.0}, 1}}}};
  plan.communications = {{"push", 0, 1e6, Fidelity::automatic, 0}};
  plan.roles = {hand::role("worker", {0, 1, 2, 3}, {hand::message(Task::Kind::send, "push", 0)}),
                hand::role("server", {9}, {hand::message(Task::Kind::receive, "pull", 0)})};
  const Folding folding = fold_of(plan, machine, true).folding;
  CHECK(folding.endpoints == std::vector<EndpointId>{0, 9});
  CHECK(folding.flow_class_count() == 1);
  REQUIRE(folding.routes[0].size() == 2);
  CHECK(folding.links[folding.routes[0][0].link] == 0);  // d0.nic.up
  CHECK(folding.routes[0][0].multiplicity == 1);
  CHECK(folding.links[folding.routes[0][1].link] == 9);  // d4.nic.down
  CHECK(folding.routes[0][1].multiplicity == 4);
}

TEST_CASE(
    "a straggler in a ring is a class of its own, and one by one so is everyone by his distance to it") {
  Machine machine = hand::star(6, 1e9, 1e-6);
  machine.devices[2].speed = 0.5;
  CHECK(fold_of(ring_plan(6), machine, false).folding.endpoints == std::vector<EndpointId>{0, 2});
  CHECK(fold_of(ring_plan(6), machine, false).folding.flow_class_count() == 1);
  CHECK(fold_of(ring_plan(6), machine, true).folding.endpoints.size() == 6);
  CHECK(fold_of(ring_plan(6), machine, true).folding.flow_class_count() == 6);
  // Two stragglers opposite each other: distances 0, 1, 2 only.
  machine.devices[5].speed = 0.5;
  CHECK(fold_of(ring_plan(6), machine, true).folding.endpoints == std::vector<EndpointId>{0, 1, 2});
}

TEST_CASE("one slow link tells the flow that crosses it from the others") {
  Machine machine = hand::star(6, 1e9, 1e-6);
  machine.links[4].bandwidth_Bps = 5e8;  // up link of device 2
  const Folding folding = fold_of(ring_plan(6), machine, false).folding;
  CHECK(folding.endpoints.size() == 1);  // all wait for the round
  CHECK(folding.flow_class == std::vector<std::uint32_t>{0, 0, 1, 0, 0, 0});
}

TEST_CASE("groups of unequal size are apart, and so are their members") {
  const Machine machine = hand::star(5, 1e9, 1e-6);
  Plan plan;
  plan.patterns = {{{{0, 1}, {2, 3}}, {{{{0, 1}}, {1.0}, 1}}}, {{{4, 1}}, {{{{0, 1}}, {1.0}, 1}}}};
  plan.communications = {{"a", 0, 1e6, Fidelity::automatic, 0}, {"b", 1, 1e6, Fidelity::automatic, 0}};
  plan.roles = {hand::role("worker", {0, 1, 2, 3, 4}, {})};
  const Folding folding = fold_of(plan, machine, true).folding;
  // 1 is in a second group, so 0 -> 1 is not 2 -> 3.
  CHECK(folding.endpoints.size() == 5);
  CHECK(folding.groups.size() == 3);
  CHECK(fold_of(plan, machine, false).folding.endpoints.size() == 4);  // 2 and 3 only have their group
}

TEST_CASE("classes of flows on the same paths have one route, unless one of them crosses the links twice") {
  Plan plan = ring_plan(4);
  plan.patterns[0].rounds = {hand::ring_round(4, 0.25, 1), hand::ring_round(4, 0.5, 1),
                             hand::ring_round(4, 0.25, 1)};
  std::vector<std::pair<std::uint32_t, std::uint32_t>>& last = plan.patterns[0].rounds[2].pairs;
  last.insert(last.end(), last.begin(), last.begin() + 4);  // two messages from each to the next
  const Folding folding = fold_of(plan, hand::star(4, 1e9, 1e-6), true).folding;
  CHECK(folding.flow_class_count() == 3);
  CHECK(folding.route_class == std::vector<std::uint32_t>{0, 0, 1});
  REQUIRE(folding.routes.size() == 2);
  REQUIRE(folding.route(1).size() == 1);
  CHECK(folding.route(1)[0].multiplicity == 1);
  REQUIRE(folding.route(2).size() == 1);
  CHECK(folding.route(2)[0].multiplicity == 2);
}

TEST_CASE("without folding everything is a class of its own") {
  const Folding folding = fold_of(ring_plan(4), hand::star(4, 1e9, 1e-6), false, false).folding;
  CHECK(folding.endpoints == std::vector<EndpointId>{0, 1, 2, 3});
  CHECK(folding.flow_class_count() == 4);
  CHECK(folding.links.size() == 8);
  CHECK(folding.routes.size() == 4);
  for (std::size_t c = 0; c < folding.routes.size(); ++c) {
    CHECK(folding.routes[c].size() == 2);
    for (const LinkUse& use : folding.routes[c]) CHECK(use.multiplicity == 1);
  }
}

TEST_CASE("the partition of random plans is equitable, and no finer than their symmetry") {
  int merged = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    RandomCase c = random_case(random);
    for (const bool one_by_one : {false, true}) {
      CAPTURE(one_by_one);
      const Folded folded = fold_of(c.plan, c.machine, one_by_one);
      check_equitable(c.plan, c.machine, folded, one_by_one);
      CHECK(folded.folding.endpoints.size() <= c.orbits);
      merged += folded.folding.endpoints.size() < c.machine.devices.size();
    }
  }
  CHECK(merged > 200);
}

TEST_CASE("the partition of random plans with one odd device or link is equitable") {
  for (unsigned seed = 301; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    RandomCase c = random_case(random);
    c.machine.devices[random() % c.machine.devices.size()].speed = 0.25;
    c.machine.links[random() % c.machine.links.size()].bandwidth_Bps = 3e9;
    for (const bool one_by_one : {false, true}) {
      CAPTURE(one_by_one);
      check_equitable(c.plan, c.machine, fold_of(c.plan, c.machine, one_by_one), one_by_one);
    }
  }
}
