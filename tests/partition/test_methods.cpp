// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <future>

#include "strategies/partition/mapping.h"
#include "strategies/partition/refinement.h"
#include "strategies/partition/report.h"
#include "strategies/partition/zoltan/zoltan_partition.h"
#include "tests/partition/graphs.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

PartitionTask task_of(const Dag& dag, Part parts) { return {dag, parts, {}, std::nullopt, 1, true}; }

/// Those that this build has.
std::vector<PartitionMethod> methods() {
  std::vector<PartitionMethod> there;
  for (const PartitionMethod& method : partition_methods())
    if (method.available()) there.push_back(method);
  return there;
}

/// Small ones: refinement tries as many moves of them as of large ones, and each looks at the whole graph.
std::vector<Dag> some_graphs() {
  std::vector<Dag> dags;
  for (unsigned seed = 1; seed <= 6; ++seed) dags.push_back(graphs::any(seed, 12 * seed).dag());
  dags.push_back(graphs::layered(1, 8, 6).dag());
  dags.push_back(graphs::training(1, 2, 4e6, 1e6).dag());
  return dags;
}

double makespan(const Dag& dag, Part parts, const Placement& placement) {
  return ReadyOrder(dag, {}, parts).makespan_us(placement);
}

}  // namespace

TEST_CASE("every method places every node, reports a true makespan, and stays above the lower bound") {
  for (const Dag& dag : some_graphs())
    for (const PartitionMethod& method : methods())
      for (const Part parts : {1u, 2u, 5u}) {
        CAPTURE(method.name);
        CAPTURE(parts);
        const PartitionTask task = task_of(dag, parts);
        const PartitionAnswer answer = method.run(task);
        REQUIRE(answer.placement.size() == dag.size());
        CHECK(
            std::all_of(answer.placement.begin(), answer.placement.end(), [&](Part p) { return p < parts; }));
        const PartitionReport report = report_partition(task, std::string(method.name), answer);
        CHECK(report.makespan_us == makespan(dag, parts, answer.placement));
        const double rounding = 1 - 1e-12;
        CHECK(report.makespan_us >= report.lower_bound_us * rounding);
        CHECK(report.schedule_makespan_us >= report.lower_bound_us * rounding);
        CHECK(report.load_imbalance >= 1 * rounding);
        CHECK(report.load_imbalance <= parts / rounding);
        if (parts == 1) {
          CHECK(report.makespan_us == approx(dag.total_time_us()).epsilon(1e-12));
          CHECK(report.cut_bytes == 0);
          CHECK(report.load_imbalance == approx(1));
        }
      }
}

TEST_CASE("the order of readiness that a method has found is that of its placement [law]") {
  int found = 0;
  for (const Dag& dag : some_graphs())
    for (const PartitionMethod& method : methods())
      for (const bool within_memory : {false, true}) {
        CAPTURE(method.name);
        PartitionTask task = task_of(dag, 3);
        if (within_memory) task.memory_bytes = 2e7;
        const PartitionAnswer answer = method.run(task);
        if (!answer.ready) continue;
        ++found;
        const Schedule schedule = ReadyOrder(dag, task.link, 3).schedule(answer.placement);
        CHECK(answer.ready->makespan_us == schedule.makespan_us);
        CHECK(answer.ready->start_us == schedule.start_us);
        CHECK(answer.ready->finish_us == schedule.finish_us);
      }
  CHECK(found > 0);
}

TEST_CASE("every method answers the same again") {
  for (const Dag& dag : some_graphs())
    for (const PartitionMethod& method : methods()) {
      CAPTURE(method.name);
      CHECK(method.run(task_of(dag, 4)).placement == method.run(task_of(dag, 4)).placement);
    }
}

TEST_CASE("the seed changes what is drawn at random and nothing else") {
  const Dag dag = graphs::layered(1, 12, 10).dag();
  for (const PartitionMethod& method : methods()) {
    if (method.name == "best") continue;  // draws too, and may choose what does not
    CAPTURE(method.name);
    PartitionTask other = task_of(dag, 4);
    other.seed = 2;
    CHECK((method.run(task_of(dag, 4)).placement != method.run(other).placement) == method.draws);
  }
}

TEST_CASE("best is never worse than any other method, nor than one part alone") {
  for (const Dag& dag : some_graphs())
    for (const Part parts : {2u, 5u}) {
      const double best = makespan(dag, parts, partition_best(task_of(dag, parts)).placement);
      CHECK(best <= dag.total_time_us());
      for (const PartitionMethod& method : methods()) {
        CAPTURE(method.name);
        CHECK(best <= makespan(dag, parts, method.run(task_of(dag, parts)).placement));
      }
    }
}

TEST_CASE("as a hypergraph a graph sends what it sends: connectivity is the cut in bytes") {
  for (const Dag& dag : some_graphs()) {
    const Hypergraph graph = hypergraph_of(dag);
    for (const Part parts : {1u, 2u, 5u}) {
      const Placement placement = partition_random(task_of(dag, parts)).placement;
      CHECK(connectivity(graph, placement) == approx(cut_bytes(dag, placement)).epsilon(1e-12));
      CHECK(imbalance(graph.weight, placement, equal_speeds(parts)) ==
            approx(load_imbalance(dag, parts, placement)).epsilon(1e-12));
    }
  }
}

TEST_CASE("Zoltan sends fewer bytes than chance, in balance") {
  if (!have_zoltan()) {
    MESSAGE("built without Zoltan: nothing to look at");
    CHECK_THROWS_WITH(partition_zoltan(task_of(graphs::layered(1, 12, 10).dag(), 2)),
                      "convoy-zoltan is not there: convoy was built without Zoltan");
    return;
  }
  for (const Dag& dag : {graphs::layered(3, 30, 20).dag(), graphs::training(3, 20, 4e6, 1e6).dag()})
    for (const Part parts : {2u, 4u, 8u}) {
      const PartitionTask task = task_of(dag, parts);
      const Placement placement = partition_zoltan(task).placement;
      CHECK(cut_bytes(dag, placement) < 0.7 * cut_bytes(dag, partition_random(task).placement));
      CHECK(load_imbalance(dag, parts, placement) <= 1.1);
    }
}

TEST_CASE("runs of Zoltan side by side do not disturb one another") {
  if (!have_zoltan()) return;
  const Dag dag = graphs::layered(3, 10, 5).dag();
  const PartitionTask task = task_of(dag, 2);
  const Placement alone = partition_zoltan(task).placement;
  std::vector<std::future<void>> lanes;
  std::atomic<int> same = 0;
  for (int lane = 0; lane < 8; ++lane)
    lanes.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < 12; ++i) same += partition_zoltan(task).placement == alone;
    }));
  for (std::future<void>& lane : lanes) CHECK_NOTHROW(lane.get());
  CHECK(same == 8 * 12);
}

TEST_CASE("refinement never makes a placement worse, and improves random ones") {
  int improved = 0, tried = 0;
  for (const Dag& dag : some_graphs())
    for (const Part parts : {2u, 5u})
      for (auto* run : {&partition_random, &partition_heft, &partition_dfs}) {
        const Placement placement = run(task_of(dag, parts)).placement;
        ReadyOrder judge(dag, {}, parts);
        const double before = judge.makespan_us(placement);
        const double after = judge.makespan_us(refine(judge, placement));
        CHECK(after <= before);
        improved += run == &partition_random && after < before, tried += run == &partition_random;
      }
  CHECK(improved == tried);
}

TEST_CASE("pardnn is never worse than one part alone") {
  for (const Dag& dag : some_graphs())
    for (const Part parts : {2u, 5u})
      CHECK(makespan(dag, parts, partition_pardnn(task_of(dag, parts)).placement) <=
            makespan(dag, parts, Placement(dag.size(), 0)));
}

TEST_CASE("refinement takes only what is acceptable") {
  const Dag dag = graphs::layered(2, 10, 8).dag();
  ReadyOrder judge(dag, {}, 3);
  const Placement start = partition_round_robin(task_of(dag, 3)).placement;
  const auto first_stays = [&](const Placement& placement) { return placement[0] == start[0]; };
  CHECK(first_stays(refine(judge, start, first_stays)));
  CHECK(refine(judge, start, [](const Placement&) { return false; }) == start);
}

TEST_CASE("variables and their updates are on one part, whatever the method") {
  const Dag dag = graphs::training(3, 8, 4e6, 1e6).dag();
  int variables = 0;
  for (NodeId v = 0; v < dag.size(); ++v)
    if (dag.memory_bytes(v) > 0) ++variables;
  CHECK(variables == 48);  // 8 blocks of 3 branches of 2 layers
  for (const PartitionMethod& method : methods()) {
    CAPTURE(method.name);
    const Placement placement = method.run(task_of(dag, 4)).placement;
    for (NodeId v = 0; v < dag.size(); ++v) {
      if (dag.memory_bytes(v) == 0) continue;
      REQUIRE(dag.members(dag.unit(v)).size() == 2);  // the variable and its update
      for (const NodeId member : dag.members(dag.unit(v))) CHECK(placement[member] == placement[v]);
    }
  }
}

TEST_CASE("the order of ids changes little: pardnn finds placements of the same quality") {
  const graphs::Lists lists = graphs::training(5, 8, 4e6, 1e6);
  const Dag dag = lists.dag();
  graphs::Lists turned;
  const auto size = static_cast<NodeId>(lists.nodes.size());
  for (NodeId v = 0; v < size; ++v) turned.nodes.push_back(lists.nodes[size - 1 - v]);
  for (const auto& [from, to] : lists.edges) turned.edges.emplace_back(size - 1 - from, size - 1 - to);
  const Dag other = turned.dag();
  const double a = makespan(dag, 4, partition_pardnn(task_of(dag, 4)).placement);
  const double b = makespan(other, 4, partition_pardnn(task_of(other, 4)).placement);
  CHECK(a == approx(b).epsilon(0.03));
}

TEST_CASE("linear clustering takes the longest ways and packs them by work") {
  // Ways: a-b-d (10+20+5, messages 35 and 25) before a-c-d; c (12) is a cluster of its own, e (30) another.
  // Largest first: {a, b, d} 35 to part 0, {e} 30 to part 1, {c} 12 to the lesser load, part 1.
  graphs::Lists lists;
  const NodeId a = lists.add(10, 1.3e6), b = lists.add(20, 0, 0, {a}), c = lists.add(12, 0, 0, {a});
  lists.add(5, 0, 0, {b, c});
  lists.add(30, 0);
  CHECK(partition_linear_clustering(task_of(lists.dag(), 2)).placement == Placement{0, 0, 1, 0, 1});
}

TEST_CASE("HEFT puts operations into gaps and where they end first") {
  // Ranks with messages of 25 us: a 10+25+40 = 75, b 40, c 30, d 20. a 0-10 on part 0, b 10-50 there
  // (elsewhere it would wait for its message until 35); c 0-30 on part 1, d 30-50 on part 1: on part 0 it
  // could start at 50.
  graphs::Lists lists;
  const NodeId a = lists.add(10, 0);
  lists.add(40, 0, 0, {a});
  lists.add(30, 0);
  lists.add(20, 0);
  const PartitionAnswer answer = partition_heft(task_of(lists.dag(), 2));
  CHECK(answer.placement == Placement{0, 0, 1, 1});
  CHECK(answer.schedule->start_us == std::vector<double>{0, 10, 0, 30});
  CHECK(answer.schedule->makespan_us == 50);
}

TEST_CASE("depth-first blocks hold equal work, first children first") {
  // Post-order from the last source to the first, children from the last to the first, reversed: a b d c.
  // Middles 5, 15, 25, 35 of 40: two a part.
  graphs::Lists lists;
  const NodeId a = lists.add(10, 0), b = lists.add(10, 0, 0, {a});
  lists.add(10, 0, 0, {a});
  lists.add(10, 0, 0, {b});
  CHECK(partition_dfs(task_of(lists.dag(), 2)).placement == Placement{0, 0, 1, 1});
}

TEST_CASE("slicing finds the longest way first, then what it left") {
  // a (10) -> b (50) -> d (10); a -> c (20) -> d; e (5) alone. Messages of 25 us on every edge.
  graphs::Lists lists;
  const NodeId a = lists.add(10, 0), b = lists.add(50, 0, 0, {a}), c = lists.add(20, 0, 0, {a});
  const NodeId d = lists.add(10, 0, 0, {b, c});
  const NodeId e = lists.add(5, 0);
  const Dag dag = lists.dag();
  const Slices slices = slice(task_of(dag, 2));
  REQUIRE(slices.clusters.size() == 3);
  CHECK(slices.primaries == 2);
  CHECK(slices.clusters[0] == std::vector<NodeId>{a, b, d});
  CHECK(slices.clusters[1] == std::vector<NodeId>{c});
  CHECK(slices.clusters[2] == std::vector<NodeId>{e});
  CHECK(slices.parallelism == approx(95.0 / 70));
  CHECK(slices.communication == approx(4 * 25 / 95.0));
  // Within the first cluster an edge counts 1 us: c is ready at 10 + 25, b at 10 + 1, d at max(62, 80).
  CHECK(slices.top_us == std::vector<double>{0, 11, 35, 80, 0});
}

TEST_CASE("slices are paths that hold every node once, and mapping keeps them whole") {
  for (const Dag& dag : some_graphs()) {
    const PartitionTask task = task_of(dag, 4);
    const Slices slices = slice(task);
    std::vector<int> seen(dag.size());
    for (const std::vector<NodeId>& cluster : slices.clusters)
      for (std::size_t i = 0; i < cluster.size(); ++i) {
        ++seen[cluster[i]];
        if (i == 0) continue;
        const auto children = dag.children(cluster[i - 1]);
        CHECK(std::find(children.begin(), children.end(), cluster[i]) != children.end());
      }
    CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
    const Placement placement = map_clusters(task, slices);
    for (const std::vector<NodeId>& cluster : slices.clusters)
      for (const NodeId v : cluster) CHECK(placement[v] == placement[cluster.front()]);
  }
}

TEST_CASE("pardnn beats linear clustering, METIS, Scotch and random placements in the geometric mean") {
  double logs[4] = {};
  for (const Dag& dag : {graphs::layered(7, 30, 20).dag(), graphs::training(7, 20, 4e6, 1e6).dag()})
    for (const Part parts : {2u, 4u, 8u}) {
      const PartitionTask task = task_of(dag, parts);
      const double ours = makespan(dag, parts, partition_pardnn(task).placement);
      int i = 0;
      for (auto* run : {&partition_linear_clustering, &partition_metis, &partition_scotch, &partition_random})
        logs[i++] += std::log(ours / makespan(dag, parts, run(task).placement));
    }
  for (const double log : logs) CHECK(log < 0);
}

TEST_CASE("pardnn's own schedule is within 5 % of HEFT's in the geometric mean") {
  double log = 0;
  for (const Dag& dag : {graphs::layered(8, 30, 20).dag(), graphs::training(8, 20, 4e6, 1e6).dag()})
    for (const Part parts : {2u, 4u, 8u}) {
      const PartitionTask task = task_of(dag, parts);
      log +=
          std::log(partition_pardnn(task).schedule->makespan_us / partition_heft(task).schedule->makespan_us);
    }
  CHECK(std::exp(log / 6) <= 1.05);
}

TEST_CASE("sct keeps a chain and its favourite readers together where etf sends") {
  // x feeds a long operation and a short one. On 2 parts etf starts the one with the longer way first, which
  // is also x's favourite; the other part takes the short one. A second producer, y, ends a little later: its
  // only reader is its favourite, and stays although the first part is free for it as early.
  const Dag dag({{10, 1000, 0}, {12, 1000, 0}, {50, 0, 0}, {40, 0, 0}}, {{0, 2}, {1, 3}});
  const PartitionTask task{dag, 2, {5, 1e6}, std::nullopt, 1, true};
  const PartitionAnswer answer = partition_sct(task);
  CHECK(answer.placement[0] == answer.placement[2]);
  CHECK(answer.placement[1] == answer.placement[3]);
  CHECK(answer.placement[0] != answer.placement[1]);
  CHECK(answer.schedule->makespan_us == approx(60));
}

TEST_CASE("sct: chains that cost more to cut than to keep stay whole") {
  // Four chains of ten on two parts; a message costs as much as five operations. Two chains a part: 20
  // operations.
  std::vector<Dag::Node> nodes(40, {10, 1000, 0});
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (NodeId chain = 0; chain < 4; ++chain)
    for (NodeId i = 0; i < 9; ++i) edges.emplace_back(10 * chain + i, 10 * chain + i + 1);
  const Dag dag(nodes, edges);
  const PartitionTask task{dag, 2, {50, 1e6}, std::nullopt, 1, true};
  const PartitionAnswer answer = partition_sct(task);
  for (const auto& [from, to] : edges) CHECK(answer.placement[from] == answer.placement[to]);
  CHECK(answer.schedule->makespan_us == approx(200));
}
