// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/replay/replay.h"
#include "tests/laws/random_experiment.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"

using namespace convoy;

namespace {

ReplayResult run(const Plan& plan, const Machine& machine, const Disturbances& disturbances, bool fold) {
  return replay(plan, machine, CostModel(Precision::fp32), {fold, NetworkModel::convoy, disturbances});
}

/// Four workers compute 10 ms, then pass 4 MB each to the next over 1 GB/s: 14 ms.
Plan plan_of_four() {
  Plan plan;
  plan.patterns = {{{{0, 1, 2, 3}}, {hand::ring_round(4, 1.0, 1)}}};
  plan.communications = {{"ring", 0, 4e6, Fidelity::chunk, 0}};
  plan.roles = {
      hand::role("worker", {0, 1, 2, 3},
                 {hand::compute("forward", 10), hand::message(Task::Kind::collective, "ring", 0, {0}, 1)})};
  return plan;
}

double step_time_s(const Disturbances& disturbances) {
  const Plan plan = plan_of_four();
  const Machine machine = hand::star(4, 1e9, 0);
  const double folded_s = run(plan, machine, disturbances, true).step_time_s;
  CHECK(run(plan, machine, disturbances, false).step_time_s == approx(folded_s).epsilon(1e-12));
  return folded_s;
}

}  // namespace

TEST_CASE("without disturbances four workers take 14 ms") { CHECK(step_time_s({}) == approx(14e-3)); }

TEST_CASE("a link that degrades slows what crosses it from then on") {
  // Worker 1's way up (link 2) has half its rate from 12 ms on: 2 of 4 MB are left, 4 ms instead of 2.
  CHECK(step_time_s({{{12e-3, 2, 0.5e9}}, {}, {}}) == approx(16e-3));
  // Down from 12 to 20 ms.
  CHECK(step_time_s({{{12e-3, 2, 0}, {20e-3, 2, 1e9}}, {}, {}}) == approx(22e-3));
  // After the step nothing matters.
  CHECK(step_time_s({{{1, 2, 0}}, {}, {}}) == approx(14e-3));
}

TEST_CASE("a link that goes down for good blocks the plan, and the error says who waits") {
  CHECK_THROWS_WITH_AS(step_time_s({{{12e-3, 2, 0}}, {}, {}}), doctest::Contains("the plan cannot finish"),
                       std::runtime_error);
}

TEST_CASE("a device that stops goes on afterwards with what it was computing") {
  CHECK(step_time_s({{}, {{3e-3, 2, 8e-3}}, {}}) == approx(19e-3));
  CHECK(step_time_s({{}, {{3e-3, 2, 4e-3}, {9e-3, 2, 10e-3}}, {}}) == approx(16e-3));
  // Two devices for one time: the step waits once.
  CHECK(step_time_s({{}, {{3e-3, 2, 8e-3}, {3e-3, 0, 8e-3}}, {}}) == approx(19e-3));
  // While only messages are under way nothing is lost.
  CHECK(step_time_s({{}, {{11e-3, 2, 13e-3}}, {}}) == approx(14e-3));
}

TEST_CASE("what takes no time begins after a stop, and its operations still take none") {
  // d1's 4 MB come at 4 ms, while d0 stands still from 3 to 5 ms.
  Plan plan;
  plan.patterns = {{{{1, 0}}, {{{{0, 1}}, {1.0}, 1}}}};
  plan.communications = {{"data", 0, 4e6, Fidelity::chunk, 0}};
  plan.roles = {hand::role("to", {0},
                           {hand::message(Task::Kind::receive, "take", 0), hand::compute("look", 0, {0}),
                            hand::compute("work", 1, {1})}),
                hand::role("from", {1}, {hand::message(Task::Kind::send, "give", 0)})};
  const Machine machine = hand::star(2, 1e9, 0);
  const ReplayResult result = run(plan, machine, {{}, {{3e-3, 0, 5e-3}}, {}}, true);
  CHECK(result.step_time_s == approx(6e-3));
  int looks = 0;
  for (const Span& span : spans_of(result, plan, machine, CostModel(Precision::fp32), 0)) {
    CAPTURE(span.name);
    CHECK(std::isfinite(span.end_s));
    CHECK(span.end_s >= span.start_s);
    looks += span.name == "look" ? 1 : 0;
  }
  CHECK(looks <= 1);
}

TEST_CASE("a device that stops for good blocks the plan") {
  CHECK_THROWS_AS(step_time_s({{}, {{3e-3, 2}}, {}}), std::runtime_error);
}

TEST_CASE("others' bytes share links with the plan's, no faster than their limit") {
  // From 10 ms on 1 MB of others shares worker 0's way up: 2 ms for 1 MB each, then 3 MB alone: 15 ms.
  CHECK(step_time_s({{}, {}, {{10e-3, 0, 2, 1e6}}}) == approx(15e-3));
  // At most 0.25 GB/s: the plan has 0.75 GB/s for 4 ms (3 MB), then 1 MB alone.
  CHECK(step_time_s({{}, {}, {{10e-3, 0, 2, 1e6, 0.25e9}}}) == approx(15e-3));
}

TEST_CASE("the end of a computation is that of its time in pieces") {
  using Stop = Disturbances::Stop;
  CHECK(end_of_computation_s(1, 2, {}) == 3);
  CHECK(end_of_computation_s(1, 2, {Stop{2, 0, 5}}) == 6);
  CHECK(end_of_computation_s(1, 2, {Stop{0, 0, 2}}) == 4);    // stopped when it would begin
  CHECK(end_of_computation_s(1, 2, {Stop{0, 0, 0.5}}) == 3);  // over before
  CHECK(end_of_computation_s(1, 2, {Stop{3, 0, 9}}) == 3);    // done by then
  CHECK(end_of_computation_s(1, 2, {Stop{1.5, 0, 4}, Stop{2, 0, 3}, Stop{4.5, 0, 5}}) == 6);
  CHECK(std::isinf(end_of_computation_s(1, 2, {Stop{2, 0}})));
}

namespace {

/// Two to four hosts of one or four devices on a switch, and what happens to their links and devices: at two
/// moments, to rates and for times that differ.
struct Drawn {
  lab::Experiment experiment;
  Disturbances disturbances;

  explicit Drawn(lab::Dice& dice) : experiment(drawn_experiment(dice)) {
    const Machine& machine = experiment.machine();
    const double step_s = experiment.run().step_time_s;
    const auto moment_s = [&] { return (dice.coin() ? 0.3 : 0.6) * step_s; };
    for (int changes = dice.between(2, 5); changes > 0; --changes) {
      const auto link = static_cast<LinkId>(dice.between(0, static_cast<int>(machine.links.size()) - 1));
      disturbances.link_changes.push_back(
          {moment_s(), link, machine.links[link].bandwidth_Bps / dice.one_of<int>({2, 3, 5})});
    }
    for (int stops = dice.between(0, 2); stops > 0; --stops) {
      const double at_s = moment_s();
      const auto device =
          static_cast<EndpointId>(dice.between(0, static_cast<int>(machine.devices.size()) - 1));
      disturbances.stops.push_back({at_s, device, at_s + dice.between(1, 3) * 0.1 * step_s});
    }
  }

  ReplayResult run(const Disturbances& by, bool fold) const {
    return replay(experiment.plan(), experiment.machine(), experiment.cost(),
                  {fold, NetworkModel::convoy, by});
  }

 private:
  static lab::Experiment drawn_experiment(lab::Dice& dice) {
    const std::string model = lab::random_model(dice);
    const int devices = dice.one_of<int>({1, 4});
    const std::string cluster = fmt::format(
        "{{name: lab, nodes: [{{name: n, count: {}, server: box}}], fabric: {{kind: switch, bandwidth: "
        "1GB/s, "
        "latency: 5us}}, servers: {{box: {{devices: [{{device: ideal, count: {}}}], interconnect: {}}}}}, "
        "devices: "
        "{{ideal: {{peak: {{fp32: 10TFLOPS}}, memory: 16GiB, memory_bandwidth: 500GB/s, efficiency: "
        "1.0}}}}}}",
        dice.between(2, 4), devices, devices == 1 ? "{kind: none}" : dice.one_of(lab::interconnects()));
    return {model, cluster,
            fmt::format(
                "{{kind: data_parallel, sync: all_reduce, algorithm: {}, bucket: 300kB, fidelity: {}}}",
                dice.one_of<std::string>({"ring", "tree", "hierarchical"}), dice.coin() ? "chunk" : "fluid"),
            4};
  }
};

void check_equal(const ReplayResult& a, const ReplayResult& b) {
  CHECK(a.step_time_s == approx(b.step_time_s).epsilon(1e-9));
  REQUIRE(a.endpoints.size() == b.endpoints.size());
  for (std::size_t e = 0; e < a.endpoints.size(); ++e) {
    CAPTURE(e);
    CHECK(a.endpoints[e].end_s == approx(b.endpoints[e].end_s).epsilon(1e-9));
  }
  for (std::size_t l = 0; l < a.links.size(); ++l) {
    CAPTURE(l);
    CHECK(a.links[l].bytes == approx(b.links[l].bytes).epsilon(1e-9));
    CHECK(std::abs(a.links[l].busy_s - b.links[l].busy_s) <= 1e-9 * a.step_time_s);
  }
}

}  // namespace

TEST_CASE("several disturbances at one moment: folded as unfolded, and all that is said happens [law]") {
  int slower = 0;
  for (unsigned seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    lab::Dice dice(seed);
    const Drawn drawn(dice);
    const ReplayResult folded = drawn.run(drawn.disturbances, true);
    check_equal(folded, drawn.run(drawn.disturbances, false));
    slower += folded.step_time_s > 1.001 * drawn.run({}, true).step_time_s;

    // Links of one moment in another order, since none is changed twice there.
    Disturbances other_order = drawn.disturbances;
    std::stable_sort(other_order.link_changes.begin(), other_order.link_changes.end(),
                     [](const auto& a, const auto& b) { return a.link > b.link; });
    std::ranges::reverse(other_order.stops);
    check_equal(folded, drawn.run(other_order, true));

    // A change in two at the same moment: the second holds.
    Disturbances split;
    for (const Disturbances::LinkChange& change : drawn.disturbances.link_changes) {
      split.link_changes.push_back({change.at_s, change.link, 0.37 * change.bandwidth_Bps});
      split.link_changes.push_back(change);
    }
    // A stop in two that follow each other.
    for (const Disturbances::Stop& stop : drawn.disturbances.stops) {
      const double middle_s = stop.at_s + 0.4 * (stop.until_s - stop.at_s);
      split.stops.push_back({stop.at_s, stop.endpoint, middle_s});
      split.stops.push_back({middle_s, stop.endpoint, stop.until_s});
    }
    for (const bool fold : {true, false}) check_equal(folded, drawn.run(split, fold));
    std::ranges::reverse(split.stops);
    check_equal(folded, drawn.run(split, true));
  }
  CHECK(slower > 40);
}
