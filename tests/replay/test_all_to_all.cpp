// SPDX-License-Identifier: MIT
// Rounds that do not list their messages: the same as if they did.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/plan/validate.h"
#include "sim/replay/all_to_all.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/fold.h"
#include "tests/laws/random_experiment.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;

namespace {

std::string random_cluster(lab::Dice& dice, int hosts, const std::string& fabric) {
  const int devices = dice.one_of<int>({1, 1, 4});
  const bool nics = fabric.starts_with("switch");
  const std::string spread =
      dice.one_of<std::string>({"", "", nics ? ", nic_spread: 0.2" : "", ", speed_spread: 0.2"});
  const std::string odd =
      dice.one_of<std::string>({"", nics ? ", nic_bandwidth: 0.7GB/s" : "", ", speed: 0.5"});
  return fmt::format(
      "{{name: lab, nodes: [{{name: n, count: {}, server: box{}}}, {{name: odd, count: 1, server: box{}}}], "
      "fabric: {{kind: {}, bandwidth: 1GB/s, latency: {}us}}, servers: {{box: {{devices: [{{device: ideal, "
      "count: {}}}], interconnect: {}}}}}, devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, "
      "memory_bandwidth: 500GB/s, efficiency: 1.0, launch_overhead: 0us}}}}}}",
      hosts - 1, spread, odd, fabric, dice.between(0, 30), devices,
      devices == 1 ? "{kind: none}" : dice.one_of(lab::interconnects()));
}

std::string random_strategy(lab::Dice& dice, int hosts) {
  if (dice.between(0, 2) == 0) return "{kind: hybrid, conv: batch, fc: filter}";
  return fmt::format(
      "{{kind: data_parallel, sync: parameter_server, servers: {}, placement: {}, sharding: even, "
      "local_aggregation: {}, overlap: {}}}",
      dice.between(2, hosts), dice.coin() ? "dedicated" : "colocated",
      dice.one_of<std::string>({"false", "false", "host", "owner", "ring"}), dice.coin());
}

lab::Experiment random_experiment(unsigned seed, const std::string& fabric) {
  lab::Dice dice(seed);
  const int hosts = dice.between(2, 5);
  const std::string cluster = random_cluster(dice, hosts, fabric);
  return {lab::random_model(dice), cluster, random_strategy(dice, hosts), 24};
}

/// The plan with the messages of its all-to-alls one by one. Returns how many rounds were such.
int list_messages(Plan& plan) {
  int changed = 0;
  for (Pattern& pattern : plan.patterns)
    for (Round& round : pattern.rounds) {
      if (!round.all_to_all) continue;
      Round listed{{}, {}, round.repeat};
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        listed.pairs.emplace_back(from, to);
        listed.fractions.push_back(fraction);
      });
      round = std::move(listed);
      ++changed;
    }
  return changed;
}

void check_same(const ReplayResult& one, const ReplayResult& other) {
  const auto same = [](double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max({1e-6, std::abs(a), std::abs(b)});
  };
  CHECK(same(one.step_time_s, other.step_time_s));
  CHECK(same(one.comm_bytes, other.comm_bytes));
  REQUIRE(one.endpoints.size() == other.endpoints.size());
  for (std::size_t e = 0; e < one.endpoints.size(); ++e) {
    CAPTURE(e);
    CHECK(same(one.endpoints[e].exposed_comm_s, other.endpoints[e].exposed_comm_s));
    CHECK(same(one.endpoints[e].hidden_comm_s, other.endpoints[e].hidden_comm_s));
    CHECK(same(one.endpoints[e].end_s, other.endpoints[e].end_s));
    CHECK(same(one.endpoints[e].sent_bytes, other.endpoints[e].sent_bytes));
    CHECK(same(one.endpoints[e].received_bytes, other.endpoints[e].received_bytes));
  }
  for (std::size_t l = 0; l < one.links.size(); ++l) {
    CAPTURE(l);
    CHECK(same(one.links[l].bytes, other.links[l].bytes));
    CHECK(same(one.links[l].busy_s, other.links[l].busy_s));
  }
  for (std::size_t p = 0; p < one.port_busy_s.size(); ++p)
    CHECK(same(one.port_busy_s[p], other.port_busy_s[p]));
}

/// Members of one class of `fine` are of one class of `coarse`.
void check_no_coarser(const std::vector<std::uint32_t>& fine, const std::vector<std::uint32_t>& coarse) {
  REQUIRE(fine.size() == coarse.size());
  std::map<std::uint32_t, std::uint32_t> class_of;
  for (std::size_t i = 0; i < fine.size(); ++i)
    CHECK(class_of.emplace(fine[i], coarse[i]).first->second == coarse[i]);
}

}  // namespace

TEST_CASE("an all-to-all counts, turns round and sizes the messages that it stands for [random]") {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    Round round;
    AllToAll& it = round.all_to_all.emplace();
    for (std::uint32_t member = 0; member < 8; ++member) {
      if (dice.coin()) it.senders.push_back({member, 0.25 * dice.between(1, 4)});
      if (dice.coin()) it.receivers.push_back({member, 0.125 * dice.between(1, 8)});
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> messages, turned;
    double largest = 0;
    round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      CHECK(from != to);
      CHECK(messages.emplace(std::pair{from, to}, fraction).second);
      largest = std::max(largest, fraction);
    });
    round.reversed().for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
      turned.emplace(std::pair{to, from}, fraction);
    });
    CHECK(round.message_count() == messages.size());
    CHECK(turned == messages);
    CHECK(round.largest_fraction() >= largest);
  }
}

TEST_CASE("pairs of classes have the messages of their members, less those of one host") {
  AllToAllFlows flows;
  flows.apart = {{0, 0}, {1, 1}, {2, 2}};
  const std::vector<std::uint32_t> class_of{0, 0, 1};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> messages;
  CHECK(ClassPairs(flows, class_of, class_of).all_of([&](const ClassPairs::Pair& pair) {
    messages[{pair.sender_class, pair.receiver_class}] = pair.messages;
    return true;
  }));
  CHECK(messages == decltype(messages){{{0, 0}, 2}, {{0, 1}, 2}, {{1, 0}, 2}});
}

TEST_CASE("two halves are the way between hosts, whoever they are [random]") {
  int tried = 0;
  for (const std::string fabric : {"switch", "shared", "ring", "full_mesh", "switch, nics: 2"})
    for (unsigned seed = 1; seed <= 10; ++seed) {
      CAPTURE(fabric);
      CAPTURE(seed);
      const lab::Experiment experiment = random_experiment(seed, fabric);
      const Machine& machine = experiment.machine();
      Route route;
      std::vector<LinkId> out, in, other;
      for (EndpointId a = 0; a < machine.endpoint_count(); ++a)
        for (EndpointId b = 0; b < machine.endpoint_count(); ++b) {
          if (machine.host_of(a) == machine.host_of(b)) continue;
          if (!machine.router->halves(a, out, other)) continue;
          REQUIRE(machine.router->halves(b, other, in));
          machine.router->route(a, b, route);
          out.insert(out.end(), in.begin(), in.end());
          CHECK(out == route.links);
          ++tried;
        }
      CHECK(machine.router->halves(0, out, in) == (fabric[0] == 's'));
    }
  CHECK(tried > 1000);
}

TEST_CASE("all-to-alls give what their messages give when they are listed, folded and not [random]") {
  int all_to_alls = 0, kept = 0, limited = 0;
  const std::string connections = "switch, protocol: tcp, streams: 2, stream_bandwidth: 0.1GB/s";
  for (const std::string& fabric : {std::string("switch"), std::string("shared"), connections})
    for (unsigned seed = 1; seed <= 80; ++seed) {
      CAPTURE(fabric);
      CAPTURE(seed);
      lab::Experiment experiment = random_experiment(seed, fabric);
      const FlowTable table = expand_flows(experiment.plan(), experiment.machine(), Listing::where_needed);
      kept += !table.all_to_all.empty();
      limited += table.peers > 0;
      const ReplayResult folded = experiment.run(), unfolded = experiment.run(false);
      all_to_alls += list_messages(experiment.plan()) > 0;
      const ReplayResult listed = experiment.run();
      check_same(folded, listed);
      check_same(folded, unfolded);
      CHECK(folded.timelines.size() >= listed.timelines.size());
    }
  CHECK(all_to_alls > 120);
  CHECK(kept == all_to_alls);
  CHECK(limited > 40);
}

// Messages of equal size from unequal shares (1/2 x 1/4 and 1/4 x 1/2) are told apart where they are not
// listed: the classes may be finer, which is as exact.
TEST_CASE("all-to-alls have the classes that their messages have, or finer ones [random]") {
  int equal = 0;
  for (unsigned seed = 101; seed <= 200; ++seed) {
    CAPTURE(seed);
    lab::Experiment experiment = random_experiment(seed, "switch");
    const auto table_of = [&](Listing listing) {
      return expand_flows(experiment.plan(), experiment.machine(), listing);
    };
    const auto fold_of = [&](const FlowTable& table) {
      return fold(experiment.plan(), experiment.machine(), table,
                  ranks_go_one_by_one(experiment.plan(), experiment.machine(), table), true);
    };
    const FlowTable kept_table = table_of(Listing::where_needed), listed_table = table_of(Listing::always);
    const Folding kept = fold_of(kept_table), listed = fold_of(listed_table);
    check_no_coarser(kept.endpoint_class, listed.endpoint_class);
    check_no_coarser(kept.link_class, listed.link_class);
    check_no_coarser(kept.group_class, listed.group_class);
    if (kept.flow_class_count() != listed.flow_class_count()) continue;
    ++equal;
    CHECK(kept.endpoint_class == listed.endpoint_class);
    CHECK(kept.link_class == listed.link_class);
    // Each flow class with what it puts on which links.
    using Row = std::tuple<std::uint32_t, double, std::vector<std::pair<std::uint32_t, std::uint32_t>>>;
    const auto rows = [](const Folding& folding, const FlowTable& table) {
      std::vector<Row> result;
      for (std::uint32_t c = 0; c < folding.flow_class_count(); ++c) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> uses;
        for (const LinkUse& use : folding.route(c)) uses.emplace_back(use.link, use.multiplicity);
        std::sort(uses.begin(), uses.end());
        result.emplace_back(folding.flow(table, c).round, folding.flow(table, c).fraction, uses);
      }
      std::sort(result.begin(), result.end());
      return result;
    };
    CHECK(rows(kept, kept_table) == rows(listed, listed_table));
  }
  CHECK(equal > 80);
}

TEST_CASE("even servers on 4,096 equal hosts are two flows a direction, within a host and between hosts") {
  const lab::Experiment experiment(
      lab::custom_model(1, 4'096'000), lab::star(4096, "1GB/s", "20us"),
      "{kind: data_parallel, sync: parameter_server, servers: 4096, placement: colocated, sharding: even}",
      1);
  const ReplayResult result = experiment.run();
  CHECK(result.simulated_flows == 4);
  // 0.3 ms of computing; then each host sends 4,095 of 4,096 parts of 16.384 MB at 1 GB/s, adds up at no
  // cost, and gets as much.
  const double way_s = 20e-6 + 16.384e-3 * 4095 / 4096;
  CHECK(result.step_time_s == approx(0.3e-3 + 2 * way_s).epsilon(1e-9));
  CHECK(result.endpoints[7].sent_bytes == approx(16.384e6 * 4095 / 4096).epsilon(1e-9));
  CHECK(result.comm_bytes == approx(2 * 16.384e6 * 4095).epsilon(1e-9));
}

// A connection carries 10 MB/s, and a NIC 1 GB/s, which is enough for 100 connections; each host has 7. So a
// part of 1/8 of 8 MB takes 0.1 s a direction. Where connections are wide, 7 parts take 7 ms on the NIC.
TEST_CASE("even servers whose connections are narrow take what one connection takes for one part") {
  const auto seconds = [](std::uint32_t hosts, const std::string& connection) {
    const lab::Experiment experiment(
        lab::custom_model(1, 2'000'000),
        fmt::format(
            "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, "
            "bandwidth: 1GB/s, latency: 20us, protocol: tcp, streams: 1, stream_bandwidth: {}}}, "
            "servers: {{box: {{devices: [{{device: ideal, count: 1}}], interconnect: {{kind: none}}}}}}, "
            "devices: {{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, "
            "efficiency: 1.0, launch_overhead: 0us}}}}}}",
            hosts, connection),
        fmt::format("{{kind: data_parallel, sync: parameter_server, servers: {}, placement: colocated, "
                    "sharding: even, transport: mpi}}",
                    hosts),
        1);
    const ReplayResult result = experiment.run();
    CHECK(result.simulated_flows == 4);
    // What is listed grows with the hosts, not with their pairs.
    const FlowTable table = expand_flows(experiment.plan(), experiment.machine(), Listing::where_needed);
    CHECK(table.flows.size() == 2 * hosts);  // of each host to itself, both ways
    CHECK(table.peers == 2 * hosts);         // devices and hosts' memories
    CHECK(table.connections_Bps.empty());
    return result.step_time_s;
  };
  CHECK(seconds(8, "10MB/s") - seconds(8, "1TB/s") == approx(2 * (0.1 - 7e-3)).epsilon(1e-6));
  // Twice as many hosts: parts of half the size.
  CHECK(seconds(16, "10MB/s") - seconds(16, "1TB/s") == approx(2 * (0.05 - 7.5e-3)).epsilon(1e-6));
}

TEST_CASE("automatic on an all-to-all is what it is on its messages: ranks in step where all are equal") {
  const lab::Experiment star(lab::custom_model(1, 1), lab::star(4, "1GB/s", "10us"),
                             "{kind: data_parallel, sync: all_reduce}", 1);
  Machine machine = star.machine();
  const auto one_by_one = [&](const std::vector<double>& sent, const std::vector<double>& got) {
    Round round;
    AllToAll& all = round.all_to_all.emplace();
    for (std::uint32_t member = 0; member < 4; ++member) {
      all.senders.push_back({member, sent[member]});
      all.receivers.push_back({member, got[member]});
    }
    Plan plan;
    plan.patterns = {{{{0, 1, 2, 3}}, {round}}};
    plan.communications = {{"exchange", 0, 1e6, Fidelity::automatic, 0}};
    plan.roles = {
        hand::role("worker", {0, 1, 2, 3}, {hand::message(Task::Kind::collective, "exchange", 0, {}, 1)})};
    const FlowTable listed = expand_flows(plan, machine, Listing::always),
                    halves = expand_flows(plan, machine, Listing::where_needed);
    CHECK(listed.all_to_all.empty());
    CHECK(halves.all_to_all.size() == 1);
    const bool result = ranks_go_one_by_one(plan, machine, halves)[0];
    CHECK(result == ranks_go_one_by_one(plan, machine, listed)[0]);
    return result;
  };
  const std::vector<double> equal(4, 0.25);
  CHECK_FALSE(one_by_one(equal, equal));
  for (std::size_t odd = 0; odd < 4; ++odd) {
    CAPTURE(odd);
    std::vector<double> parts = equal;
    parts[odd] = 0.5;
    CHECK(one_by_one(parts, equal));
    CHECK(one_by_one(equal, parts));
  }
  machine.links.back().bandwidth_Bps /= 2;
  CHECK(one_by_one(equal, equal));
}

TEST_CASE("a folding that folds nothing needs all messages") {
  const lab::Experiment experiment(
      lab::custom_model(1, 4'000), lab::star(4, "1GB/s", "20us"),
      "{kind: data_parallel, sync: parameter_server, servers: 4, placement: colocated, sharding: even}", 1);
  const FlowTable table = expand_flows(experiment.plan(), experiment.machine(), Listing::where_needed);
  CHECK(table.flows.size() == 2 * 4);  // of each host to itself, both ways
  CHECK(table.all_to_all.size() == 2);
  const std::vector<bool> one_by_one(experiment.plan().patterns.size(), true);
  CHECK_THROWS_AS(fold(experiment.plan(), experiment.machine(), table, one_by_one, false), std::logic_error);
}

TEST_CASE("plans with wrong all-to-alls are refused") {
  const auto refusal = [](auto change) {
    lab::Experiment experiment(
        lab::custom_model(1, 4'000), lab::star(4, "1GB/s", "20us"),
        "{kind: data_parallel, sync: parameter_server, servers: 4, placement: colocated, sharding: even}", 1);
    change(experiment.plan().patterns[0].rounds[0]);
    try {
      validate(experiment.plan(), experiment.machine());
    } catch (const std::logic_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal([](Round&) {}).empty());
  CHECK(refusal([](Round& round) { round.all_to_all->senders[0].member = 99; }) ==
        "plan: member 99 of a group of 8 is not there, or twice in an all-to-all");
  CHECK(refusal([](Round& round) { round.all_to_all->receivers[1].member = 4; }) ==
        "plan: member 4 of a group of 8 is not there, or twice in an all-to-all");
  CHECK(refusal([](Round& round) { round.all_to_all->senders[0].share = -1; }) ==
        "plan: a part of an all-to-all has the share -1");
  CHECK(refusal([](Round& round) {
          round.pairs = {{0, 1}}, round.fractions = {1.0};
        }) == "plan: a round is an all-to-all and lists 1 pairs");
}
