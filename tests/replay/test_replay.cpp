// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/replay/replay.h"
#include "tests/replay/replayed.h"

using namespace convoy;
using namespace convoy::replayed;
using Kind = Task::Kind;

namespace {

bool same_time(double a_s, double b_s) {
  return std::abs(a_s - b_s) <= 1e-9 * std::max(std::abs(a_s), std::abs(b_s)) + 1e-12;
}

void check_task(const ReplayResult& result, EndpointId endpoint, TaskId task, double start_s, double end_s) {
  CAPTURE(endpoint);
  CAPTURE(task);
  const TaskTimes& times = result.timelines.at(result.timeline_of.at(endpoint)).tasks.at(task);
  CAPTURE(times.start_s);
  CAPTURE(times.end_s);
  CHECK(same_time(times.start_s, start_s));
  CHECK(same_time(times.end_s, end_s));
}

void check_usage(const ReplayResult& result, EndpointId endpoint, double compute_s, double exposed_comm_s) {
  CAPTURE(endpoint);
  CAPTURE(result.endpoints[endpoint].exposed_comm_s);
  CHECK(same_time(result.endpoints[endpoint].compute_s, compute_s));
  CHECK(same_time(result.endpoints[endpoint].exposed_comm_s, exposed_comm_s));
}

}  // namespace

TEST_CASE("a message takes its latency and its bytes over the bandwidth, after what it waits for") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"result", 0, MB, Fidelity::automatic, 0}};
  plan.roles = {
      hand::role("first", {0}, {hand::compute("work", 1), hand::message(Kind::send, "give", 0, {0})}),
      hand::role("second", {1}, {hand::message(Kind::receive, "take", 0), hand::compute("work", 2, {0})})};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 10 * us));
  check_task(result, 0, 0, 0, 1 * ms);
  check_task(result, 0, 1, 1 * ms, 2.01 * ms);
  check_task(result, 1, 0, 0, 2.01 * ms);
  check_task(result, 1, 1, 2.01 * ms, 4.01 * ms);
  CHECK(same_time(result.step_time_s, 4.01 * ms));
  check_usage(result, 0, 1 * ms, 1.01 * ms);
  check_usage(result, 1, 2 * ms, 1.01 * ms);  // the first ms it waits for nothing under way
  CHECK(same_time(result.endpoints[0].end_s, 2.01 * ms));
  CHECK(result.endpoints[0].sent_bytes == MB);
  CHECK(result.endpoints[0].received_bytes == 0);
  CHECK(result.endpoints[1].received_bytes == MB);
  CHECK(result.comm_bytes == MB);
  CHECK(result.links[0].bytes == MB);  // d0.nic.up
  CHECK(result.links[3].bytes == MB);  // d1.nic.down
  CHECK(result.links[1].bytes == 0);
  CHECK(same_time(result.links[0].busy_s, 1.01 * ms));
  CHECK(result.links[2].busy_s == 0);
  CHECK(result.timeline_of[2] == ReplayResult::no_timeline);  // a host without a role
}

TEST_CASE("messages that end before anyone waits for them are there at once") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"early", 0, MB, Fidelity::automatic, 0}};
  plan.roles = {
      hand::role("first", {0}, {hand::message(Kind::send, "give", 0)}),
      hand::role("second", {1}, {hand::compute("work", 5), hand::message(Kind::receive, "take", 0, {0})})};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 0));
  check_task(result, 0, 0, 0, 1 * ms);
  check_task(result, 1, 1, 5 * ms, 5 * ms);
  check_usage(result, 1, 5 * ms, 0);
}

TEST_CASE("gather, scatter and exchange: all messages of a moment share the links") {
  const Machine machine = hand::star(5, 1e9, 0);
  const std::vector<EndpointId> all{0, 1, 2, 3, 4};
  Plan plan;
  plan.communications = {{"data", 0, MB, Fidelity::automatic, 0}};
  const auto one_end = [&](Kind centre, Kind others) {
    plan.roles = {hand::role("centre", {0}, {hand::message(centre, "centre", 0)}),
                  hand::role("others", {1, 2, 3, 4}, {hand::message(others, "other", 0)})};
  };
  plan.patterns = {messages(all, {{1, 0}, {2, 0}, {3, 0}, {4, 0}})};
  one_end(Kind::receive, Kind::send);
  CHECK(same_time(run(plan, machine).step_time_s, 4 * ms));
  plan.patterns = {messages(all, {{0, 1}, {0, 2}, {0, 3}, {0, 4}})};
  one_end(Kind::send, Kind::receive);
  CHECK(same_time(run(plan, machine).step_time_s, 4 * ms));
  // Every rank sends to every other: each link carries four messages, both directions at once.
  Pattern& exchange = plan.patterns[0];
  exchange.rounds[0].pairs.clear();
  for (std::uint32_t i = 0; i < 5; ++i)
    for (std::uint32_t j = 0; j < 5; ++j)
      if (i != j) exchange.rounds[0].pairs.emplace_back(i, j);
  plan.roles = {
      hand::role("all", all, {hand::message(Kind::send, "out", 0), hand::message(Kind::receive, "in", 0)})};
  const ReplayResult result = run(plan, machine);
  CHECK(same_time(result.step_time_s, 4 * ms));
  CHECK(result.comm_bytes == 20 * MB);
  CHECK(result.endpoints[3].sent_bytes == 4 * MB);
}

TEST_CASE("a scatter of unequal parts: small ones end first and leave their share") {
  // 1 and 3 MB over one up link of 1 GB/s: 2 ms for the first; the second has 2 MB left and the link alone.
  Plan plan;
  plan.patterns = {{{{0, 1, 2}}, {{{{0, 1}, {0, 2}}, {0.25, 0.75}, 1}}}};
  plan.communications = {{"parts", 0, 4 * MB, Fidelity::automatic, 0}};
  plan.roles = {hand::role("centre", {0}, {hand::message(Kind::send, "give", 0)}),
                hand::role("other", {1, 2}, {hand::message(Kind::receive, "take", 0)})};
  const ReplayResult result = run(plan, hand::star(3, 1e9, 0));
  check_task(result, 1, 0, 0, 2 * ms);
  check_task(result, 2, 0, 0, 4 * ms);
  check_task(result, 0, 0, 0, 4 * ms);
}

TEST_CASE("groups of one pattern go by themselves") {
  Plan plan;
  plan.patterns = {{{{0, 1}, {2, 3}}, {hand::ring_round(2, 0.5, 2)}}};
  plan.communications = {{"sum", 0, MB, Fidelity::fluid, 0}};
  plan.roles = {hand::role("fast", {0, 1}, {hand::message(Kind::collective, "sum", 0, {}, 1)}),
                hand::role("slow", {2, 3},
                           {hand::compute("work", 5), hand::message(Kind::collective, "sum", 0, {0}, 1)})};
  const ReplayResult result = run(plan, hand::star(4, 1e9, 0));
  check_task(result, 0, 0, 0, 1 * ms);
  check_task(result, 2, 1, 5 * ms, 6 * ms);
}

TEST_CASE("in chunks an early rank waits for its receiver, as fluid all start together") {
  const Machine machine = hand::star(2, 1e9, 0);
  // Chunks of 0.5 MB: the early rank's first begins when the late one is there, at 3 ms, as the other way;
  // then both send again: 4 ms.
  const ReplayResult chunk = run(two_rank_ring(3, Fidelity::chunk, 0), machine);
  check_task(chunk, 0, 0, 0, 4 * ms);
  check_task(chunk, 1, 1, 3 * ms, 4 * ms);
  check_usage(chunk, 0, 0, 1 * ms);
  check_usage(chunk, 1, 3 * ms, 1 * ms);
  const ReplayResult fluid = run(two_rank_ring(3, Fidelity::fluid, 0), machine);
  check_task(fluid, 0, 0, 3 * ms, 4 * ms);
  check_task(fluid, 1, 1, 3 * ms, 4 * ms);
  check_usage(fluid, 0, 0, 1 * ms);
  check_usage(fluid, 1, 3 * ms, 1 * ms);
  CHECK(chunk.comm_bytes == fluid.comm_bytes);
}

TEST_CASE("a collective's overhead comes before its first message, and is part of it") {
  const Machine machine = hand::star(2, 1e9, 10 * us);
  for (const Fidelity fidelity : {Fidelity::chunk, Fidelity::fluid}) {
    CAPTURE(static_cast<int>(fidelity));
    const ReplayResult result = run(two_rank_ring(0, fidelity, 200 * us), machine);
    check_task(result, 0, 0, 0, 200 * us + 2 * 10 * us + 1 * ms);
    check_usage(result, 0, 0, 200 * us + 2 * 10 * us + 1 * ms);
  }
}

TEST_CASE("a send's overhead comes before its messages") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"data", 0, MB, Fidelity::automatic, 300 * us}};
  plan.roles = {hand::role("from", {0}, {hand::message(Kind::send, "give", 0)}),
                hand::role("to", {1}, {hand::message(Kind::receive, "take", 0)})};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 0));
  check_task(result, 0, 0, 0, 1.3 * ms);
  check_task(result, 1, 0, 0, 1.3 * ms);
  check_usage(result, 0, 0, 1.3 * ms);
  check_usage(result, 1, 0, 1 * ms);
}

TEST_CASE("nothing to send, nobody to send to, and messages within a place take no time but their latency") {
  const Machine machine = hand::star(2, 1e9, 10 * us);
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"nothing", 0, 0, Fidelity::automatic, 0}};
  plan.roles = {hand::role("from", {0}, {hand::message(Kind::send, "give", 0)}),
                hand::role("to", {1}, {hand::message(Kind::receive, "take", 0)})};
  CHECK(same_time(run(plan, machine).step_time_s, 10 * us));

  plan.communications[0].bytes = MB;
  plan.patterns = {messages({0, 2}, {{0, 1}})};  // device 0 to its host's memory
  plan.roles[1] = {"to", {2}, {"cpu"}, {hand::message(Kind::receive, "take", 0)}, {}};
  const ReplayResult in_place = run(plan, machine);
  CHECK(in_place.step_time_s == 0);
  CHECK(in_place.comm_bytes == 0);
  CHECK(in_place.endpoints[0].sent_bytes == 0);

  for (const Fidelity fidelity : {Fidelity::chunk, Fidelity::fluid}) {
    Plan alone;
    alone.patterns = {{{{0}}, {}}};
    alone.communications = {{"sum", 0, MB, fidelity, 0}};
    alone.roles = {hand::role(
        "worker", {0}, {hand::message(Kind::collective, "sum", 0, {}, 1), hand::compute("work", 1, {0})})};
    CHECK(same_time(run(alone, machine).step_time_s, 1 * ms));
  }
}

TEST_CASE("streams go in order, and what has no stream goes when it can") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}}), messages({0, 1}, {{0, 1}}), messages({0, 1}, {{0, 1}})};
  for (std::uint32_t i = 0; i < 3; ++i)
    plan.communications.push_back({"data", i, MB, Fidelity::automatic, 0});
  plan.roles = {
      hand::role("from", {0},
                 {hand::compute("long", 4), hand::message(Kind::send, "behind", 0, {0}, 1),
                  hand::message(Kind::send, "in line", 1, {}, 1), hand::message(Kind::send, "free", 2)}),
      hand::role("to", {1},
                 {hand::message(Kind::receive, "a", 0), hand::message(Kind::receive, "b", 1),
                  hand::message(Kind::receive, "c", 2)})};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 0));
  check_task(result, 0, 1, 4 * ms, 5 * ms);
  check_task(result, 0, 2, 5 * ms, 6 * ms);  // ready since the beginning
  check_task(result, 0, 3, 0, 1 * ms);
  check_usage(result, 0, 4 * ms, 2 * ms);  // the free message is hidden
}

TEST_CASE("messages wait for those of their own pattern alone, and where this keeps them in order") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}}), messages({0, 1}, {{0, 1}}), messages({0, 1}, {{0, 1}})};
  plan.patterns[0].in_order = plan.patterns[1].in_order = true;
  for (const std::uint32_t pattern : {0, 0, 1, 2})
    plan.communications.push_back({"data", pattern, MB, Fidelity::automatic, 0});
  std::vector<Task> sends, receives;
  for (std::uint32_t i = 0; i < 4; ++i) {
    sends.push_back(hand::message(Kind::send, "send", i));
    receives.push_back(hand::message(Kind::receive, "receive", i));
  }
  plan.roles = {hand::role("from", {0}, sends), hand::role("to", {1}, receives)};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 0));
  check_task(result, 0, 0, 0, 3 * ms);  // a third of the link each: the second of the first pattern waits
  check_task(result, 0, 1, 0, 4 * ms);
  check_task(result, 0, 2, 0, 3 * ms);
  check_task(result, 0, 3, 0, 3 * ms);
}

TEST_CASE("a message in order waits for its own latency, and for those before it") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.patterns[0].in_order = true;
  std::vector<Task> sends{hand::compute("work", 2.5)}, receives;
  for (std::uint32_t i = 0; i < 4; ++i) {
    plan.communications.push_back({"data", 0, MB, Fidelity::automatic, 0});
    std::vector<TaskId> after;
    if (i == 1 || i == 2) after = {0};  // sent when the first is still on its way
    if (i == 3) after = {3};            // sent when all before it have ended
    sends.push_back(hand::message(Kind::send, "send", i, after));
    receives.push_back(hand::message(Kind::receive, "receive", i));
  }
  plan.roles = {hand::role("from", {0}, sends), hand::role("to", {1}, receives)};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 3 * ms));
  check_task(result, 0, 1, 0, 4 * ms);
  check_task(result, 0, 2, 2.5 * ms, 6.5 * ms);  // the first one has arrived at 4 ms
  check_task(result, 0, 3, 2.5 * ms, 7.5 * ms);  // the second one arrives at 6.5 ms
  check_task(result, 0, 4, 7.5 * ms, 11.5 * ms);
}

TEST_CASE("hosts compute for the seconds of their tasks, one after the other") {
  Plan plan;
  plan.patterns = {messages({0, 1, 4}, {{0, 2}, {1, 2}}), messages({0, 1, 4}, {{2, 0}, {2, 1}})};
  plan.communications = {{"push", 0, MB, Fidelity::automatic, 0}, {"pull", 1, MB, Fidelity::automatic, 0}};
  plan.roles = {hand::role("worker", {0, 1},
                           {hand::message(Kind::send, "push", 0), hand::message(Kind::receive, "pull", 1)}),
                {"server",
                 {4},
                 {"cpu"},
                 {hand::message(Kind::receive, "gradients", 0), hand::host_compute("add", 3 * ms, {0}),
                  hand::host_compute("update", 1 * ms, {1}), hand::message(Kind::send, "send back", 1, {2})},
                 {}}};
  // Host 4 - 3 devices = h1, in device 1's place: its own messages take no time, device 0's 1 ms each way.
  const ReplayResult result = run(plan, hand::star(3, 1e9, 0));
  check_task(result, 4, 1, 1 * ms, 4 * ms);
  check_task(result, 4, 2, 4 * ms, 5 * ms);
  check_task(result, 0, 1, 0, 6 * ms);
  check_task(result, 1, 1, 0, 5 * ms);
  CHECK(same_time(result.endpoints[4].compute_s, 4 * ms));
  const std::vector<Span> spans =
      spans_of(result, plan, hand::star(3, 1e9, 0), CostModel(Precision::fp32), 4);
  REQUIRE(spans.size() == 4);
  CHECK(spans[2].name == "add");
  CHECK(spans[2].compute);
}

TEST_CASE("a device's speed divides its compute times") {
  Machine machine = hand::star(2, 1e9, 0);
  machine.devices[1].speed = 0.5;
  Plan plan;
  plan.roles = {hand::role("worker", {0, 1}, {hand::compute("work", 3)})};
  const ReplayResult result = run(plan, machine);
  check_usage(result, 0, 3 * ms, 0);
  check_usage(result, 1, 6 * ms, 0);
  CHECK(same_time(result.step_time_s, 6 * ms));
}

TEST_CASE("a device that its host keeps waiting: how long is told, and is part of its compute time") {
  Machine machine = hand::star(1, 1e9, 0);
  machine.device_types[0].issue_factor = 1;
  Software software(Precision::fp32);
  software.costs.issue_forward_s = 1.5 * ms;
  Plan plan;
  Task work = hand::compute("work", 1);
  for (const double op_ms : {1.0, 4.0, 1.0}) work.ops.push_back(hand::op("more", op_ms));
  plan.roles = {hand::role("worker", {0}, {work})};
  // Issued at 1.5, 3, 4.5 and 6 ms; done at 2.5, 4, 8.5 and 9.5 ms, of which 7 are its own.
  const ReplayResult result = replay(plan, machine, CostModel(software), {});
  CHECK(same_time(result.endpoints[0].compute_s, 9.5 * ms));
  CHECK(same_time(result.endpoints[0].issue_wait_s, 2.5 * ms));
  CHECK(same_time(result.step_time_s, 9.5 * ms));
}

TEST_CASE("both directions of a port count as one busy stretch where they overlap") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}}), messages({0, 1}, {{1, 0}})};
  plan.communications = {{"there", 0, 2 * MB, Fidelity::automatic, 0},
                         {"back", 1, 2 * MB, Fidelity::automatic, 0}};
  plan.roles = {
      hand::role("a", {0}, {hand::message(Kind::send, "out", 0), hand::message(Kind::receive, "in", 1)}),
      hand::role("b", {1},
                 {hand::message(Kind::receive, "in", 0), hand::compute("think", 1),
                  hand::message(Kind::send, "out", 1, {1})})};
  const ReplayResult result = run(plan, hand::star(2, 1e9, 0));
  // There from 0 to 2 ms, back from 1 to 3 ms.
  CHECK(same_time(result.links[0].busy_s, 2 * ms));
  CHECK(same_time(result.links[1].busy_s, 2 * ms));
  CHECK(same_time(result.port_busy_s[0], 3 * ms));
  CHECK(same_time(result.port_busy_s[1], 3 * ms));
}

TEST_CASE("messages of a petabyte take as long on SimGrid's links as on convoy's") {
  Plan plan;
  plan.patterns = {messages({0, 1}, {{0, 1}})};
  plan.communications = {{"much", 0, 1e15, Fidelity::automatic, 0}};
  plan.roles = {hand::role("a", {0}, {hand::message(Kind::send, "out", 0)}),
                hand::role("b", {1}, {hand::message(Kind::receive, "in", 0)})};
  for (const NetworkModel model : {NetworkModel::convoy, NetworkModel::simgrid}) {
    ReplayOptions options;
    options.network_model = model;
    CHECK(
        same_time(replay(plan, hand::star(2, 1e9, 0), CostModel(Precision::fp32), options).step_time_s, 1e6));
  }
}
