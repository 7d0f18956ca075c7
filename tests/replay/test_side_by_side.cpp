// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <memory>

#include "sim/replay/side_by_side.h"
#include "tests/replay/replayed.h"
#include "tests/support/approx.h"

using namespace convoy;
using namespace convoy::replayed;
using Kind = Task::Kind;

namespace {

const CostModel fp32{Precision::fp32};

/// Two devices that compute for so long and then sum 1 MB in a ring of two: each sends 1 MB in all.
Plan ring_of_two(double compute_ms) {
  Plan plan = two_rank_ring(0, Fidelity::fluid, 0);
  const Task sum = hand::message(Kind::collective, "sum", 0, {0}, 1);
  plan.roles = {hand::role("worker", {0, 1}, {hand::compute("work", compute_ms), sum})};
  plan.images = 2;
  return plan;
}

/// Hosts of two devices each, and one link up and one down a host; devices 2h and 2h + 1 are host h's.
Machine pairs(std::uint32_t hosts, double bandwidth_Bps) {
  Machine machine = hand::devices(2 * hosts);
  machine.hosts.clear();
  const auto router = std::make_shared<hand::TableRouter>();
  machine.port_count = hosts;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    machine.hosts.push_back({fmt::format("h{}", h), 0, 2 * h, 2});
    machine.links.push_back({fmt::format("h{}.nic.up", h), bandwidth_Bps, 0, h});
    machine.links.push_back({fmt::format("h{}.nic.down", h), bandwidth_Bps, 0, h});
  }
  for (std::uint32_t d = 0; d < 2 * hosts; ++d) machine.devices[d].host = d / 2;
  for (std::uint32_t a = 0; a < 2 * hosts; ++a)
    for (std::uint32_t b = 0; b < 2 * hosts; ++b)
      if (a / 2 != b / 2) router->table[{a, b}] = {{a / 2 * 2, b / 2 * 2 + 1}, 0};
  machine.router = router;
  return machine;
}

JobBeside job(const Plan& plan, EndpointId first, EndpointId second) { return {plan, fp32, {first, second}}; }

}  // namespace

TEST_CASE("side by side: two jobs whose time is communication over one link take twice as long") {
  const Plan plan = ring_of_two(0);
  const Machine machine = pairs(2, 1e9);
  const std::vector<double> slow = slowdowns_beside({job(plan, 0, 2), job(plan, 1, 3)}, machine);
  CHECK(slow[0] == approx(2));
  CHECK(slow[1] == approx(2));
}

TEST_CASE(
    "side by side: of jobs on one link, n that only communicate take n times as long, whatever they send") {
  // Shares are equal while all send, so a job with twice the bytes takes twice as long as the others, alone and
  // beside them.
  const Plan plan = ring_of_two(0);
  Plan larger = plan;
  larger.communications[0].bytes *= 2;
  Machine three = hand::devices(6);
  three.port_count = 1;
  three.links = {{"cable", 1e9, 0, 0}};
  const auto router = std::make_shared<hand::TableRouter>();
  for (std::uint32_t a = 0; a < 3; ++a) router->table[{a, a + 3}] = router->table[{a + 3, a}] = {{0}, 0};
  three.router = router;
  const std::vector<double> slow =
      slowdowns_beside({job(plan, 0, 3), job(plan, 1, 4), job(larger, 2, 5)}, three);
  for (const double factor : slow) CHECK(factor == approx(3));
}

TEST_CASE("side by side: jobs that share no link take exactly as long as alone, whatever they compute") {
  const Plan plan = ring_of_two(3), other = ring_of_two(0.7);
  const Machine machine = pairs(4, 1e9);
  const std::vector<JobBeside> jobs{job(plan, 0, 2), job(other, 4, 6)};
  CHECK(slowdowns_beside(jobs, machine) == std::vector<double>{1, 1});
  CHECK(slowdowns_beside({jobs[0]}, machine) == std::vector<double>{1});
}

TEST_CASE(
    "side by side: no link carries more than it can, and one that is never idle carries all of it [law]") {
  // A step alone: `ms` of computing, then 1 ms of sending. Beside others, job j sends 1 MB in alone * slow s.
  const Machine machine = pairs(2, 1e9);
  for (const double ms : {0.0, 0.2, 1.0, 5.0}) {
    CAPTURE(ms);
    const Plan a = ring_of_two(ms), b = ring_of_two(0);
    const std::vector<double> slow = slowdowns_beside({job(a, 0, 2), job(b, 1, 3)}, machine);
    const double load = 1 / ((ms + 1) * slow[0]) + 1 / (1 * slow[1]);
    CHECK(load == approx(1).epsilon(2e-2));  // b always sends; the two are measured over whole steps of each
    // Sending takes a twice as long, since b always sends; computing takes what it took.
    CHECK(slow[0] == approx((ms + 2) / (ms + 1)).epsilon(2e-2));
  }
}

TEST_CASE("side by side: jobs that seldom send hardly meet, and phases are not what decides") {
  // Alone 9 ms of computing, 1 ms of sending. If phases are independent, a sending job meets the other sending
  // for a tenth of the time: f = 10 slow, and of the 1 ms of sending at full rate, the share met goes at half.
  // With q = sending time beside the other, sending takes q = 1 + q q / (9 + q) / 2 to first order.
  const Plan plan = ring_of_two(9);
  const std::vector<double> slow = slowdowns_beside({job(plan, 0, 2), job(plan, 1, 3)}, pairs(2, 1e9));
  for (const double factor : slow) {
    CHECK(factor > 1);
    CHECK(factor == approx(1.0056).epsilon(6e-3));
  }
}

TEST_CASE("side by side: the links of a job are those that its messages cross") {
  const Plan plan = ring_of_two(1);
  const Machine machine = pairs(3, 1e9);
  CHECK(links_of(job(plan, 0, 4), machine) == std::vector<LinkId>{0, 1, 4, 5});
  CHECK(links_of(job(plan, 0, 1), machine).empty());
}

TEST_CASE("side by side: each job has connections of its own") {
  // A connection between two hosts carries 0.25 GB/s, the cable 1 GB/s: two jobs do not slow each other down.
  Machine machine = pairs(2, 1e9);
  const auto router = std::make_shared<hand::TableRouter>();
  for (const EndpointId a : {0u, 1u})
    for (const EndpointId b : {2u, 3u}) {
      router->table[{a, b}] = {{0, 3}, 0, {4, 5}, 0.25e9};
      router->table[{b, a}] = {{2, 1}, 0, {5, 4}, 0.25e9};
    }
  machine.router = router;
  const Plan plan = ring_of_two(0);
  const std::vector<double> slow = slowdowns_beside({job(plan, 0, 2), job(plan, 1, 3)}, machine);
  CHECK(slow[0] == approx(1));
  CHECK(slow[1] == approx(1));
}

TEST_CASE("side by side: images that hosts prepare more slowly than devices train hide what links cost") {
  Plan plan = ring_of_two(0);
  plan.input = InputFeed{{5e-3}, 1, {}};
  const std::vector<double> slow = slowdowns_beside({job(plan, 0, 2), job(plan, 1, 3)}, pairs(2, 1e9));
  CHECK(slow[0] == approx(1).epsilon(1e-3));
}
