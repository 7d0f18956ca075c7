// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "strategies/partition/ready_heap.h"
#include "strategies/partition/schedule.h"
#include "tests/partition/graphs.h"

using namespace convoy;

namespace {

const PartLink cable{25, 130'000};

Placement random_placement(NodeId size, Part parts, unsigned seed) {
  std::mt19937 random(seed);
  Placement placement(size);
  for (Part& part : placement) part = static_cast<Part>(random() % parts);
  return placement;
}

/// The judge's rule read out loud: of all nodes whose parents have been scheduled, the one that is ready
/// first; then the one with the longest way to the end; then the smallest id.
double makespan_by_definition(const Dag& dag, const Placement& placement, Part parts) {
  std::vector<double> level(dag.size(), -1);
  const auto way = [&](auto& self, NodeId v) -> double {
    if (level[v] >= 0) return level[v];
    double longest = 0;
    for (const NodeId w : dag.children(v)) longest = std::max(longest, self(self, w));
    return level[v] = dag.time_us(v) + longest;
  };
  std::vector<double> finish(dag.size(), -1), free(parts, 0.0);
  double makespan = 0;
  for (NodeId done = 0; done < dag.size(); ++done) {
    NodeId next = dag.size();
    double next_ready = 0;
    for (NodeId v = 0; v < dag.size(); ++v) {
      if (finish[v] >= 0) continue;
      double ready = 0;
      bool complete = true;
      for (const NodeId u : dag.parents(v)) {
        complete = complete && finish[u] >= 0;
        ready = std::max(ready, placement[u] == placement[v]
                                    ? finish[u]
                                    : finish[u] + (25.0 + dag.output_bytes(u) / 130000.0));
      }
      if (!complete) continue;
      const bool first =
          next == dag.size() || ready < next_ready || (ready == next_ready && way(way, v) > way(way, next));
      if (first) next = v, next_ready = ready;
    }
    const Part part = placement[next];
    finish[next] = free[part] = std::max(free[part], next_ready) + dag.time_us(next);
    makespan = std::max(makespan, finish[next]);
  }
  return makespan;
}

/// One operation at a time on each part, and none before its inputs are there.
void check_valid(const Dag& dag, const Placement& placement, Part parts, const Schedule& schedule) {
  double end = 0;
  std::vector<std::vector<NodeId>> on(parts);
  for (NodeId v = 0; v < dag.size(); ++v) {
    CHECK(schedule.finish_us[v] == schedule.start_us[v] + dag.time_us(v));
    for (const NodeId u : dag.parents(v)) {
      const double message = placement[u] == placement[v] ? 0 : cable.cost_us(dag.output_bytes(u));
      CHECK(schedule.start_us[v] >= schedule.finish_us[u] + message);
    }
    end = std::max(end, schedule.finish_us[v]);
    on[placement[v]].push_back(v);
  }
  CHECK(schedule.makespan_us == end);
  for (std::vector<NodeId>& nodes : on) {
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
      return std::pair{schedule.start_us[a], schedule.finish_us[a]} <
             std::pair{schedule.start_us[b], schedule.finish_us[b]};
    });
    for (std::size_t i = 1; i < nodes.size(); ++i)
      CHECK(schedule.start_us[nodes[i]] >= schedule.finish_us[nodes[i - 1]]);
  }
}

}  // namespace

TEST_CASE("the judge gives what its definition gives, to the last bit") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const Dag dag = graphs::any(seed, 5 + seed * 3).dag();
    for (const Part parts : {1u, 2u, 3u, 7u}) {
      const Placement placement = random_placement(dag.size(), parts, seed);
      ReadyOrder judge(dag, cable, parts);
      CHECK(judge.makespan_us(placement) == makespan_by_definition(dag, placement, parts));
    }
  }
}

TEST_CASE("inputs are ready on each part when the last of them is there") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const Dag dag = graphs::any(seed, 60).dag();
    const std::vector<double> message_us = message_costs(dag, cable);
    for (const Part parts : {1u, 2u, 3u, 7u}) {
      const Placement placement = random_placement(dag.size(), parts, seed);
      ReadyOrder judge(dag, cable, parts);
      judge.makespan_us(placement);
      const std::vector<double>& finish_us = judge.finish_us();
      for (NodeId v = 0; v < dag.size(); ++v) {
        const InputsReady ready = find_ready(dag, v, placement, finish_us, message_us);
        double earliest_us = std::numeric_limits<double>::infinity();
        for (Part part = 0; part < parts; ++part) {
          double last_us = 0;
          for (const NodeId u : dag.parents(v))
            last_us = std::max(last_us, finish_us[u] + (placement[u] == part ? 0 : message_us[u]));
          CHECK(ready.on_us(part) == last_us);
          earliest_us = std::min(earliest_us, last_us);
        }
        CHECK(ready.at_sender_us == earliest_us);
      }
    }
  }
}

TEST_CASE(
    "a heap of what is ready gives the earliest, and of those that are ready together the smallest rank") {
  std::mt19937 random(1);
  ReadyHeap heap;
  std::vector<std::pair<double, NodeId>> inside;  // time, rank
  for (NodeId step = 0; step < 4000; ++step) {
    CAPTURE(step);
    if (step < 1000 || (step < 2000 && random() % 2 == 0)) {
      const double time_us = random() % 50;
      heap.push({time_us, 4000 - step, step});
      inside.emplace_back(time_us, 4000 - step);
      continue;
    }
    REQUIRE(heap.empty() == inside.empty());
    if (inside.empty()) break;
    const auto least = std::min_element(inside.begin(), inside.end());
    const ReadyHeap::Entry first = heap.pop();
    CHECK(std::pair{first.time_us, first.rank} == *least);
    CHECK(first.item == 4000 - first.rank);
    inside.erase(least);
  }
  CHECK(inside.empty());
}

TEST_CASE("a diamond on two parts waits for its messages") {
  // a (10 us, 1.3 MB: a message of 25 + 10 us) -> b (20 us), c (30 us) -> d (5 us); c is elsewhere.
  // b ends at 30; c runs 45 to 75 and sends 0 bytes in 25 us: d runs 100 to 105.
  graphs::Lists lists;
  const NodeId a = lists.add(10, 1.3e6), b = lists.add(20, 1.3e6, 0, {a}), c = lists.add(30, 0, 0, {a});
  lists.add(5, 0, 0, {b, c});
  const Dag dag = lists.dag();
  CHECK(ReadyOrder(dag, cable, 2).makespan_us({0, 0, 1, 0}) == 105);
}

TEST_CASE("operations run in the order of readiness, whatever waits behind them") {
  // Part 0: `long` (100 us) is ready at 0 like `first` (1 us), and has the longer way to the end; the chain
  // that hangs on `first` and is ready at 101 ends at 102.
  graphs::Lists lists;
  lists.add(100, 0);
  const NodeId first = lists.add(1, 0);
  lists.add(1, 0, 0, {first});
  const Dag dag = lists.dag();
  CHECK(ReadyOrder(dag, cable, 1).makespan_us({0, 0, 0}) == 102);
}

TEST_CASE("a limit gives up where the makespan reaches it and changes nothing where it does not") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Dag dag = graphs::any(seed, 60).dag();
    const Placement placement = random_placement(dag.size(), 3, seed);
    const double makespan = ReadyOrder(dag, cable, 3).makespan_us(placement);
    CHECK(ReadyOrder(dag, cable, 3).makespan_us(placement, makespan) ==
          std::numeric_limits<double>::infinity());
    CHECK(ReadyOrder(dag, cable, 3).makespan_us(placement, makespan * 1.001) == makespan);
  }
}

TEST_CASE("one judge asked for placements in any order, with any limit, answers as one that is asked once") {
  std::mt19937 random(7);
  const Dag dag = graphs::any(3, 60).dag();
  const std::vector<Placement> placements{random_placement(dag.size(), 3, 1),
                                          random_placement(dag.size(), 3, 2)};
  ReadyOrder judge(dag, cable, 3);
  for (int asked = 0; asked < 200; ++asked) {
    const Placement& placement = placements[random() % placements.size()];
    ReadyOrder fresh(dag, cable, 3);
    const double makespan = fresh.makespan_us(placement);
    const double limit = makespan * (0.8 + 0.1 * static_cast<double>(random() % 5));
    CAPTURE(asked);
    CHECK(judge.makespan_us(placement, limit) == ReadyOrder(dag, cable, 3).makespan_us(placement, limit));
    if (limit <= makespan) continue;
    CHECK(judge.start_us() == fresh.start_us());
    CHECK(judge.finish_us() == fresh.finish_us());
    CHECK(judge.sequence() == fresh.sequence());
  }
}

TEST_CASE("every way of scheduling is a schedule, and none is shorter than the lower bound") {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const Dag dag = graphs::any(seed, 80).dag();
    for (const Part parts : {1u, 2u, 5u}) {
      const Placement placement = random_placement(dag.size(), parts, seed);
      const std::vector<double> level = placed_bottom_levels(dag, message_costs(dag, cable), placement);
      ReadyOrder order(dag, cable, parts);
      const Schedule ready = order.schedule(placement);
      const Schedule priority = schedule_by_priority(dag, cable, parts, placement, level);
      const Schedule insertion = schedule_by_insertion(dag, cable, parts, placement, dag.order());
      const Schedule best = best_schedule(order, cable, placement);
      const std::vector<Schedule> all = schedules_of(order, cable, placement);
      REQUIRE(all.size() == ScheduleWays::count);
      for (const Schedule* schedule : {&ready, &priority, &insertion, &best}) {
        check_valid(dag, placement, parts, *schedule);
        CHECK(schedule->makespan_us >= lower_bound_us(dag, parts));
      }
      CHECK(best.makespan_us <= std::min(ready.makespan_us, priority.makespan_us));
      for (const Schedule& schedule : all) {
        CHECK(best.makespan_us <= schedule.makespan_us);
        CHECK(schedule.makespan_us >= busiest_us(dag, parts, placement));
      }
    }
  }
}

TEST_CASE("priorities let the long way go first where readiness does not") {
  // Part 0 has three 10 us operations that are ready at 0; the last of them by id feeds 50 us on part 1.
  // By readiness ties go to the long way too, so make it ready later: it hangs on a 1 us operation of part 0.
  graphs::Lists lists;
  lists.add(10, 0), lists.add(10, 0);
  const NodeId head = lists.add(1, 0);
  const NodeId urgent = lists.add(1, 0, 0, {head});
  lists.add(50, 0, 0, {urgent});
  const Dag dag = lists.dag();
  const Placement placement{0, 0, 0, 0, 1};
  // Readiness: head (its way is the longest) 0-1, the two others 1-21, urgent 21-22, a message to 47, end 97.
  ReadyOrder ready(dag, cable, 2);
  CHECK(ready.makespan_us(placement) == 97);
  // Priority: head 0-1, urgent 1-2, message to 27, end 77.
  CHECK(best_schedule(ready, cable, placement).makespan_us == 77);
}

TEST_CASE("bottom levels count messages only between parts") {
  graphs::Lists lists;
  const NodeId a = lists.add(10, 1.3e6), b = lists.add(20, 2.6e6, 0, {a});
  lists.add(30, 0, 0, {b});
  const Dag dag = lists.dag();
  CHECK(bottom_levels(dag) == std::vector<double>{60, 50, 30});
  CHECK(bottom_levels(dag, message_costs(dag, cable)) == std::vector<double>{140, 95, 30});  // + 35, + 45
  CHECK(placed_bottom_levels(dag, message_costs(dag, cable), {0, 0, 1}) == std::vector<double>{105, 95, 30});
}
