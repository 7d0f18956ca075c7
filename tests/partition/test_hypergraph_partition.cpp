// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "strategies/partition/fm_refinement.h"
#include "strategies/partition/hypergraph_partition.h"
#include "strategies/partition/zoltan/zoltan_partition.h"
#include "tests/support/approx.h"

using namespace convoy;

namespace {

LayeredHypergraph random_hypergraph(unsigned seed, std::uint32_t vertices, std::uint32_t nets, int heaviest) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  LayeredHypergraph graph;
  for (std::uint32_t v = 0; v < vertices; ++v) {
    graph.weight.push_back(pick(1, heaviest));
    graph.layer.push_back(v / 3);
  }
  for (std::uint32_t n = 0; n < nets; ++n) {
    std::set<std::uint32_t> pins;
    const int size = pick(1, 5);
    for (int i = 0; i < size; ++i)
      pins.insert(static_cast<std::uint32_t>(pick(0, static_cast<int>(vertices) - 1)));
    graph.nets.push_back({static_cast<double>(pick(1, 20)), {pins.begin(), pins.end()}});
  }
  return graph;
}

Parts random_parts(unsigned seed, std::size_t vertices, std::uint32_t count) {
  std::mt19937 random(seed);
  Parts parts(vertices);
  for (std::uint32_t& part : parts) part = std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random);
  return parts;
}

/// The definition, part by part: a net costs once for every part after the first that has one of its pins.
double slow_connectivity(const LayeredHypergraph& graph, const Parts& parts, std::uint32_t count) {
  double sum = 0;
  for (const Hypergraph::Net& net : graph.nets) {
    int present = 0;
    for (std::uint32_t part = 0; part < count; ++part) {
      bool here = false;
      for (const std::uint32_t pin : net.pins) here = here || parts[pin] == part;
      present += here;
    }
    for (int extra = 1; extra < present; ++extra) sum += net.cost;
  }
  return sum;
}

/// Least connectivity of all partitions within the limit, by trying them all.
double brute_force(const LayeredHypergraph& graph, std::uint32_t count, double epsilon) {
  double best = std::numeric_limits<double>::infinity();
  Parts parts(graph.weight.size(), 0);
  while (true) {
    if (imbalance(graph.weight, parts, equal_speeds(count)) <= 1 + epsilon)
      best = std::min(best, slow_connectivity(graph, parts, count));
    std::size_t v = 0;
    while (v < parts.size() && ++parts[v] == count) parts[v++] = 0;
    if (v == parts.size()) return best;
  }
}

}  // namespace

TEST_CASE("connectivity is that of the slow definition on random hypergraphs") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const std::uint32_t count = 1 + seed % 9;
    const LayeredHypergraph graph = random_hypergraph(seed, 5 + seed % 40, 3 + seed % 70, 10);
    const Parts parts = random_parts(seed, graph.weight.size(), count);
    CHECK(connectivity(graph, parts) == slow_connectivity(graph, parts, count));
    CHECK(cut(graph, parts) <= connectivity(graph, parts));
  }
}

TEST_CASE("two parts: cut and connectivity are one") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const LayeredHypergraph graph = random_hypergraph(seed, 30, 50, 10);
    const Parts parts = random_parts(seed, 30, 2);
    CHECK(cut(graph, parts) == connectivity(graph, parts));
  }
}

TEST_CASE("a net over three parts costs twice, and half the weight too much is an imbalance of 1.5") {
  const LayeredHypergraph graph{{{3, 1, 1, 1}, {{5, {0, 1, 2}}, {7, {2, 3}}, {11, {1}}}}, {0, 0, 1, 1}};
  CHECK(connectivity(graph, {0, 1, 2, 2}) == 2 * 5);
  CHECK(cut(graph, {0, 1, 2, 2}) == 5);
  CHECK(connectivity(graph, {0, 1, 2, 0}) == 2 * 5 + 7);
  CHECK(imbalance(graph.weight, {0, 1, 2, 2}, equal_speeds(3)) == 1.5);
}

TEST_CASE("refinement never gives back worse than it got, and keeps the balance it got") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const std::uint32_t count = 2 + seed % 5;
    const LayeredHypergraph graph = random_hypergraph(seed, 60, 90, 4);
    Parts start(60);
    for (std::uint32_t v = 0; v < 60; ++v) start[v] = v % count;
    const double epsilon = std::max(0.1, imbalance(graph.weight, start, equal_speeds(count)) - 1);
    const Parts refined = refine(graph, start, equal_speeds(count), epsilon);
    CHECK(slow_connectivity(graph, refined, count) <= slow_connectivity(graph, start, count));
    CHECK(imbalance(graph.weight, refined, equal_speeds(count)) <= 1 + epsilon + 1e-9);
  }
}

TEST_CASE("a pass leaves what it says: refining twice in a row changes nothing") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const LayeredHypergraph graph = random_hypergraph(seed, 40, 80, 3);
    Parts parts = random_parts(seed, 40, 4);
    const double limit = 1.2 * std::accumulate(graph.weight.begin(), graph.weight.end(), 0.0) / 4;
    const LayeredNets nets = shorten(graph);
    for (int i = 0; i < 30; ++i) FmRefinement(nets, parts, std::vector<double>(4, limit)).run();
    const double cost = slow_connectivity(graph, parts, 4);
    FmRefinement(nets, parts, std::vector<double>(4, limit)).run();
    CHECK(slow_connectivity(graph, parts, 4) == cost);
  }
}

TEST_CASE("partitions of small hypergraphs are near the best of all, and within the tolerance") {
  double found = 0, best = 0;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const std::uint32_t count = 2 + seed % 2;
    const LayeredHypergraph graph = random_hypergraph(seed, 10, 14, 2);
    const double optimum = brute_force(graph, count, 0.3);
    if (optimum == std::numeric_limits<double>::infinity()) continue;
    const Parts parts = partition_hypergraph(graph, equal_speeds(count), 0.3);
    CHECK(imbalance(graph.weight, parts, equal_speeds(count)) <= 1.3 + 1e-9);
    CHECK(slow_connectivity(graph, parts, count) >= optimum);
    found += slow_connectivity(graph, parts, count);
    best += optimum;
  }
  CHECK(found <= 1.1 * best);
}

TEST_CASE("with whole layers among its starts a hypergraph's partition is no worse than they, nor than without") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const LayeredHypergraph graph = random_hypergraph(seed, 60, 90, 3);
    const Speeds speeds = equal_speeds(4);
    const Parts layers = partition_by_layers(graph, speeds);
    const double epsilon = imbalance(graph.weight, layers, speeds) - 1 + 1e-9;
    const Parts with = partition_hypergraph(graph, speeds, epsilon),
                without = partition_hypergraph(graph, speeds, epsilon, false);
    CHECK(imbalance(graph.weight, with, speeds) <= 1 + epsilon + 1e-9);
    CHECK(connectivity(graph, with) <= connectivity(graph, layers));
    if (imbalance(graph.weight, without, speeds) <= 1 + epsilon)
      CHECK(connectivity(graph, with) <= connectivity(graph, without));
  }
}

TEST_CASE("the balance holds where vertices are light") {
  for (const std::uint32_t count : {2u, 3u, 8u, 16u}) {
    for (const double epsilon : {0.02, 0.1, 0.3}) {
      CAPTURE(count);
      CAPTURE(epsilon);
      const LayeredHypergraph graph = random_hypergraph(count, 600, 800, 2);
      const Parts parts = partition_hypergraph(graph, equal_speeds(count), epsilon);
      CHECK(imbalance(graph.weight, parts, equal_speeds(count)) <= 1 + epsilon + 1e-9);
      CHECK(*std::max_element(parts.begin(), parts.end()) < count);
      CHECK(parts == partition_hypergraph(graph, equal_speeds(count), epsilon));
    }
  }
}

TEST_CASE("layer-wise borders are the best: the heaviest part is as light as can be") {
  // Layers of 5, 1, 1, 5, 2, 2, 6: in three parts {5 1 1} {5 2} {2 6}, heaviest 8, mean 22/3.
  LayeredHypergraph graph{{{5, 1, 1, 5, 2, 2, 6}, {}}, {0, 1, 2, 3, 4, 5, 6}};
  CHECK(imbalance(graph.weight, partition_by_layers(graph, equal_speeds(3)), equal_speeds(3)) ==
        approx(8 / (22.0 / 3)));
  // A layer is never split: both its blocks lie together.
  graph.layer = {0, 0, 1, 1, 2, 2, 2};
  const Parts parts = partition_by_layers(graph, equal_speeds(2));
  CHECK(parts == Parts{0, 0, 0, 0, 1, 1, 1});
}

TEST_CASE(
    "the even split gives every part the same number of each layer's blocks, random ones depend on the "
    "seed") {
  const LayeredHypergraph graph{{{1, 1, 1, 1, 1, 1}, {}}, {0, 0, 1, 1, 1, 1}};
  CHECK(partition_evenly(graph, equal_speeds(2)) == Parts{0, 1, 0, 0, 1, 1});
  const LayeredHypergraph larger = random_hypergraph(1, 100, 1, 1);
  CHECK(partition_at_random(larger, equal_speeds(4), 1) == partition_at_random(larger, equal_speeds(4), 1));
  CHECK(partition_at_random(larger, equal_speeds(4), 1) != partition_at_random(larger, equal_speeds(4), 2));
  CHECK(imbalance(larger.weight, partition_at_random(larger, equal_speeds(4), 1), equal_speeds(4)) == 1);
}

TEST_CASE("Zoltan gives the same partition each time, refinement makes it no worse, and ours comes near it") {
  if (!have_zoltan()) {
    MESSAGE("built without Zoltan: nothing to compare");
    CHECK_THROWS_WITH(partition_by_zoltan(random_hypergraph(1, 10, 10, 1), 2, 0.1),
                      "convoy-zoltan is not there: convoy was built without Zoltan");
    return;
  }
  for (unsigned seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const LayeredHypergraph graph = random_hypergraph(seed, 300, 500, 2);
    const Parts zoltan = partition_by_zoltan(graph, 4, 0.1);
    CHECK(zoltan == partition_by_zoltan(graph, 4, 0.1));
    CHECK(std::set<std::uint32_t>(zoltan.begin(), zoltan.end()).size() == 4);
    const double allowed = std::max(0.1, imbalance(graph.weight, zoltan, equal_speeds(4)) - 1);
    const Parts refined = refine(graph, zoltan, equal_speeds(4), allowed);
    CHECK(connectivity(graph, refined) <= connectivity(graph, zoltan));
    CHECK(connectivity(graph, partition_hypergraph(graph, equal_speeds(4), 0.1)) <=
          1.25 * connectivity(graph, zoltan));
  }
}
