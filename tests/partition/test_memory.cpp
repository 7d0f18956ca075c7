// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <numeric>

#include "strategies/partition/memory.h"
#include "strategies/partition/report.h"
#include "tests/partition/graphs.h"

using namespace convoy;

namespace {

PartitionReport pardnn_within(const Dag& dag, Part parts, std::optional<double> memory_bytes) {
  const PartitionTask task{dag, parts, {}, memory_bytes, 1, true};
  return report_partition(task, "pardnn", partition_pardnn(task));
}

}  // namespace

TEST_CASE("outputs are held from their operation to their last reader, variables throughout") {
  // One part: v (variable, 100 B, its output is itself), a (7 B) -> b (20 B) -> c (3 B); c reads a too.
  // While a runs: 100 + 7; b: + 20; c: + 3 = 130, the peak; afterwards nothing but v.
  graphs::Lists lists;
  lists.add(1, 100, 100);
  const NodeId a = lists.add(1, 7), b = lists.add(1, 20, 0, {a});
  lists.add(1, 3, 0, {a, b});
  const Dag dag = lists.dag();
  const Placement placement(4, 0);
  ReadyOrder ready(dag, {}, 1);
  const MemoryUse use = emulate_memory(dag, {}, 1, placement, best_schedule(ready, {}, placement));
  CHECK(use.resident_bytes == std::vector<double>{100});
  CHECK(use.peak_bytes == std::vector<double>{130});
}

TEST_CASE("a message holds memory on both sides while it is under way, and at its reader to the end") {
  // a (10 us, 1.3 MB, message 35 us) on part 0 runs 0-10; its message arrives on part 1 at 45. Part 0: x runs
  // 10-30, y 30-60: a's output is held through y, in which the message ends. z 60-70 has it no more. Part 1:
  // p runs 0-20 and is running when the message sets out: the buffer is there from p on; r reads it.
  graphs::Lists lists;
  const NodeId a = lists.add(10, 1.3e6), x = lists.add(20, 0, 0, {a}), y = lists.add(30, 0, 0, {x});
  const NodeId z = lists.add(10, 5e6, 0, {y}), p = lists.add(20, 0), r = lists.add(10, 0, 0, {a, p});
  const Dag dag = lists.dag();
  const Placement placement{0, 0, 0, 0, 1, 1};
  const Schedule schedule = ReadyOrder(dag, {}, 2).schedule(placement);
  REQUIRE(schedule.start_us[r] == 45);
  const MemoryUse use = emulate_memory(dag, {}, 2, placement, schedule);
  REQUIRE(use.outputs.size() == 3);
  CHECK(use.outputs[0].node == a);
  CHECK(use.outputs[0].part == 0);
  CHECK(use.outputs[0].first == use.position[a]);
  CHECK(use.outputs[0].last == use.position[y]);
  CHECK(use.outputs[1].part == 1);
  CHECK(use.outputs[1].first == use.position[p]);
  CHECK(use.outputs[1].last == use.position[r]);
  CHECK(use.outputs[2].node == z);
  CHECK(use.peak_bytes == std::vector<double>{5e6, 1.3e6});
}

TEST_CASE("ParDNN's published phases are ours without the refinement, where memory is no matter") {
  int others = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Dag dag = graphs::any(seed, 60).dag();
    const auto placed = [&](const PartitionMethod& method, bool refined) {
      const PartitionTask task{dag, 3, {}, std::nullopt, 1, refined};
      return method.run(task).placement;
    };
    const PartitionMethod &pardnn = *find_partition_method("pardnn"),
                          &published = *find_partition_method("pardnn_published");
    CHECK(placed(published, true) == placed(pardnn, false));
    others += placed(published, true) != placed(pardnn, true) ? 1 : 0;
  }
  CHECK(others > 0);  // the refinement does something
}

TEST_CASE("the memory phase leaves alone what fits") {
  const Dag dag = graphs::training(1, 10, 4e6, 1e6).dag();
  const PartitionReport free = pardnn_within(dag, 4, std::nullopt), wide = pardnn_within(dag, 4, 1e12);
  CHECK(free.assignment == wide.assignment);
  CHECK(wide.fits);
}

TEST_CASE("after the memory phase every part fits where the memory of all of them suffices") {
  for (unsigned seed = 1; seed <= 4; ++seed)
    for (const Part parts : {2u, 4u, 8u}) {
      CAPTURE(seed);
      CAPTURE(parts);
      const Dag dag = graphs::training(seed, 16, 4e6, 2e6).dag();
      const double alone = pardnn_within(dag, 1, std::nullopt).peak_memory_bytes[0];
      // An even share with room for what lies on two parts at a time and for the tensors at hand.
      const double limit = 1.25 * alone / parts + 8 * 4e6;
      const PartitionReport report = pardnn_within(dag, parts, limit);
      for (const double peak : report.peak_memory_bytes) CHECK(peak <= limit);
      CHECK(report.fits);
    }
}

TEST_CASE("memory costs little time where there is enough of it") {
  const Dag dag = graphs::training(2, 16, 4e6, 2e6).dag();
  const double alone = pardnn_within(dag, 1, std::nullopt).peak_memory_bytes[0];
  const PartitionReport free = pardnn_within(dag, 4, std::nullopt),
                        tight = pardnn_within(dag, 4, 0.4 * alone);
  CHECK(tight.fits);
  CHECK(tight.makespan_us <= 1.3 * free.makespan_us);
}

TEST_CASE("where nothing fits the answer says so") {
  const Dag dag = graphs::training(1, 4, 4e6, 1e6).dag();
  const PartitionReport report = pardnn_within(dag, 2, 1e6);
  CHECK_FALSE(report.fits);
  CHECK(report.assignment.size() == dag.size());
}

TEST_CASE("the makespan told is that of a schedule that keeps the memory") {
  // Two chains of 10 bytes on one part. As they are ready, both heads run first and their outputs lie there
  // together; one chain after the other holds one at a time, and is told to pause in between.
  graphs::Lists lists;
  const NodeId a = lists.add(1, 10), b = lists.add(1, 10);
  lists.add(1, 0, 0, {a});
  lists.add(1, 0, 0, {b});
  const Dag dag = lists.dag();
  const PartitionAnswer answer{Placement(4, 0), Schedule{{0, 7, 1, 8}, {1, 8, 2, 9}, 9}};
  const auto makespan_within = [&](std::optional<double> bytes) {
    const PartitionReport report = report_partition({dag, 1, {}, bytes, 1, true}, "by hand", answer);
    CHECK(report.ready_order_makespan_us == 4);
    CHECK(report.schedule_makespan_us == 9);
    CHECK(report.fits);
    return report.makespan_us;
  };
  CHECK(makespan_within(std::nullopt) == 4);
  CHECK(makespan_within(20) == 4);
  CHECK(makespan_within(15) == 9);
}
