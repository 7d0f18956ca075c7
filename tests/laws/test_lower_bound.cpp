// SPDX-License-Identifier: MIT
// Lower bounds where theory gives them. That no replay goes below them is one of the laws of every strategy.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/replay/lower_bound.h"
#include "sim/replay/replay.h"
#include "tests/support/approx.h"
#include "tests/support/hand.h"
#include "tests/support/lab.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

LowerBound bound_of(const Experiment& it) { return lower_bound(it.plan(), it.machine(), it.cost()); }

}  // namespace

TEST_CASE("lower bound: messages that never meet are as long as in the replay") {
  // Two layers of 10 images and 0.3 ms an image on 4 devices; a ring sends 2 x 3/4 x 4 MB over 1 GB/s.
  const Experiment ring(custom_model(2, 500'000), star(4, "1GB/s", "10us"),
                        "{kind: data_parallel, sync: all_reduce, overlap: false}", 10);
  const LowerBound bound = bound_of(ring);
  CHECK(bound.step_time_s == approx(6e-3 + 6e-3 + 6 * 10e-6).epsilon(1e-9));
  CHECK(bound.step_time_s == approx(ring.run().step_time_s).epsilon(1e-9));
  CHECK(bound.critical_compute_s == approx(6e-3).epsilon(1e-9));
  CHECK_FALSE(bound.link.has_value());
}

TEST_CASE("lower bound: what all have to send over one link, from the moment when it can begin") {
  // Two workers, one at half the speed, push 20 MB each to one server over 1 GB/s, as one message after 6 ms
  // and after 12 ms. Alone the second push would be there at 32 ms; then 40 MB go back. In fact the pushes
  // take until 46 ms, since both share the server's NIC.
  const std::string cluster = fmt::format(
      "{{name: lab, nodes: [{{name: a, count: 1, server: box}}, {{name: b, count: 1, server: box, speed: "
      "0.5}}], fabric: {{kind: switch, bandwidth: 1GB/s, latency: 0us}}, {}}}",
      ideal_servers());
  const Experiment push(custom_model(2, 2'500'000), cluster,
                        "{kind: data_parallel, sync: parameter_server, overlap: false, sharding: even}", 10);
  const LowerBound bound = bound_of(push);
  REQUIRE(bound.link.has_value());
  CHECK(push.machine().links[bound.link->link].name == "ps0.nic.up");
  CHECK(bound.link->bytes == approx(40e6).epsilon(1e-9));
  CHECK(bound.link->free_until_s == approx(32e-3).epsilon(1e-9));
  CHECK(bound.step_time_s == approx(32e-3 + 40e-3).epsilon(1e-9));
  CHECK(push.run().step_time_s == approx(46e-3 + 40e-3).epsilon(1e-6));
  CHECK(bound.running_s == std::vector<double>{6e-3, 12e-3});
}

TEST_CASE("lower bound: compute that must follow the last byte counts") {
  // A chain of two stages: the second one's device gets 40 bytes an image from the first over a slow link,
  // and then has its own 10 x 0.3 ms to do, and the first its backward pass of 2 ms after the gradients are
  // back.
  const Experiment pipe(custom_model(2, 0), star(2, "100kB/s", "0us"), "{kind: pipeline, stages: 2}", 5);
  const double message_s = 10 * 40 / 100e3;
  CHECK(bound_of(pipe).step_time_s == approx(6e-3 + 2 * message_s).epsilon(1e-9));
  CHECK(pipe.run().step_time_s == approx(6e-3 + 2 * message_s).epsilon(1e-9));
}

TEST_CASE("lower bound: a link's last byte may be for the one that has least to do after it") {
  // 1 MB and 3 MB over one up link of 1 GB/s: the smaller part is there at 2 ms and 10 ms of work follow, the
  // larger one at 4 ms, before 1 ms. 4 ms of sending and 10 ms of work are nobody's.
  Plan plan;
  plan.patterns = {{{{0, 1, 2}}, {{{{0, 1}, {0, 2}}, {0.25, 0.75}, 1}}}};
  plan.communications = {{"parts", 0, 4e6, Fidelity::automatic, 0}};
  const auto taken = [](double work_ms) {
    return std::vector<Task>{hand::message(Task::Kind::receive, "take", 0),
                             hand::compute("work", work_ms, {0})};
  };
  plan.roles = {hand::role("centre", {0}, {hand::message(Task::Kind::send, "give", 0)}),
                hand::role("smaller", {1}, taken(10)), hand::role("larger", {2}, taken(1))};
  const Machine machine = hand::star(3, 1e9, 0);
  const CostModel cost(Precision::fp32);
  CHECK(replay(plan, machine, cost, ReplayOptions()).step_time_s == approx(12e-3).epsilon(1e-9));
  CHECK(lower_bound(plan, machine, cost).step_time_s <= 12e-3);
}

TEST_CASE("lower bound: what follows the last of the messages that fill a link counts") {
  // 4 MB from each of two devices to a third one, over its down link of 1 GB/s: both are there after 8 ms,
  // and 5 ms of work follow. Each message by itself would be there after 4 ms.
  Plan plan;
  plan.patterns = {{{{0, 2}}, {{{{0, 1}}, {1}, 1}}}, {{{1, 2}}, {{{{0, 1}}, {1}, 1}}}};
  plan.communications = {{"first", 0, 4e6, Fidelity::automatic, 0},
                         {"second", 1, 4e6, Fidelity::automatic, 0}};
  plan.roles = {
      hand::role("one", {0}, {hand::message(Task::Kind::send, "give", 0)}),
      hand::role("other", {1}, {hand::message(Task::Kind::send, "give", 1)}),
      hand::role("centre", {2},
                 {hand::message(Task::Kind::receive, "take first", 0),
                  hand::message(Task::Kind::receive, "take second", 1), hand::compute("work", 5, {0, 1})})};
  const Machine machine = hand::star(3, 1e9, 0);
  const CostModel cost(Precision::fp32);
  CHECK(replay(plan, machine, cost, ReplayOptions()).step_time_s == approx(13e-3).epsilon(1e-9));
  CHECK(lower_bound(plan, machine, cost).step_time_s == approx(13e-3).epsilon(1e-9));
}

TEST_CASE("lower bound: asynchronous workers each at their own rate, and none with backup workers") {
  const auto with = [](const std::string& mode) {
    return Experiment(custom_model(2, 250'000), star(4, "1000000GB/s", "0us"),
                      fmt::format("{{kind: data_parallel, sync: parameter_server, {}}}", mode), 10);
  };
  // 10 images of each take 6 ms, on a network without time.
  for (const char* mode : {"mode: async", "mode: ssp, staleness: 2"})
    CHECK(bound_of(with(mode)).step_time_s == approx(6e-3).epsilon(1e-4));
  CHECK(bound_of(with("backup_workers: 1")).step_time_s == 0);
}
