// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "strategies/partition/fm_refinement.h"
#include "strategies/partition/hypergraph_partition.h"

using namespace convoy;

namespace {

/// Layers of up to eight vertices; every vertex read by all of a later layer or two, some by others, too.
LayeredHypergraph random_network(unsigned seed, std::uint32_t layers) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  LayeredHypergraph graph;
  std::vector<std::vector<std::uint32_t>> members(layers);
  for (std::uint32_t l = 0; l < layers; ++l) {
    const std::uint32_t size = 1 + below(8), weight = 1 + below(4);
    for (std::uint32_t i = 0; i < size; ++i) {
      members[l].push_back(static_cast<std::uint32_t>(graph.weight.size()));
      graph.weight.push_back(weight);
      graph.layer.push_back(l);
    }
  }
  for (std::uint32_t l = 0; l + 1 < layers; ++l) {
    const std::uint32_t next = l + 1, far = l + 1 + below(layers - l - 1), cost = 1 + below(9);
    for (const std::uint32_t v : members[l]) {
      std::set<std::uint32_t> readers(members[next].begin(), members[next].end());
      if (below(3) == 0) readers.insert(members[far].begin(), members[far].end());
      if (below(3) == 0) readers.insert(members[far][below(members[far].size())]);
      Hypergraph::Net net{static_cast<double>(cost), {v}};
      net.pins.insert(net.pins.end(), readers.begin(), readers.end());
      graph.nets.push_back(std::move(net));
    }
  }
  return graph;
}

Parts drawn_parts(unsigned seed, std::size_t vertices, std::uint32_t count) {
  std::mt19937 random(seed);
  Parts parts(vertices);
  for (std::uint32_t& part : parts) part = static_cast<std::uint32_t>(random() % count);
  return parts;
}

/// k-way Fiduccia-Mattheyses as it is stated: every gain is the difference of two connectivities, and every
/// move of every vertex is looked at. Costs are whole numbers, so that both are exact.
class PlainRefinement {
 public:
  PlainRefinement(const LayeredHypergraph& graph, Parts& parts, std::vector<double> limits)
      : graph_(graph), parts_(parts), limits_(std::move(limits)) {}
  void run() {
    for (int i = 0; i < 12 && pass(); ++i) {
    }
  }

 private:
  std::vector<double> over() const {
    std::vector<double> result(limits_.size());
    for (std::size_t v = 0; v < parts_.size(); ++v) result[parts_[v]] += graph_.weight[v];
    for (std::size_t p = 0; p < result.size(); ++p) result[p] -= limits_[p];
    return result;
  }
  std::pair<double, double> score() const {
    double excess = 0;
    for (const double o : over()) excess += std::max(0.0, o);
    return {excess, connectivity(graph_, parts_)};
  }
  bool pass() {
    const auto start = score();
    auto best = start;
    Parts kept = parts_;
    std::vector<char> locked(parts_.size());
    while (true) {
      const std::vector<double> o = over();
      const double now = connectivity(graph_, parts_);
      const bool overloaded = std::any_of(o.begin(), o.end(), [](double x) { return x > 0; });
      double gain = 0;
      std::size_t vertex = parts_.size();
      Part to = 0;
      for (std::size_t v = 0; v < parts_.size(); ++v) {
        const Part from = parts_[v];
        if (locked[v] || (overloaded && o[from] <= 0)) continue;
        for (Part p = 0; p < limits_.size(); ++p) {
          const double after = o[p] + graph_.weight[v];
          if (p == from || !(after <= 0 || (o[from] > 0 && after < o[from]))) continue;
          parts_[v] = p;
          const double of_this = now - connectivity(graph_, parts_);
          if (vertex == parts_.size() || of_this > gain) gain = of_this, vertex = v, to = p;
        }
        parts_[v] = from;
      }
      if (vertex == parts_.size()) break;
      parts_[vertex] = to;
      locked[vertex] = 1;
      if (score() < best) best = score(), kept = parts_;
    }
    parts_ = kept;
    return best < start;
  }

  const LayeredHypergraph& graph_;
  Parts& parts_;
  std::vector<double> limits_;
};

}  // namespace

TEST_CASE("nets in short cost what they cost in full, as they are and in groups") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const LayeredHypergraph graph = random_network(seed, 9);
    const LayeredNets nets = shorten(graph);
    CHECK(
        std::any_of(nets.nets.begin(), nets.nets.end(), [](const auto& net) { return !net.layers.empty(); }));
    const std::uint32_t count = 2 + seed % 6;
    const Parts parts = drawn_parts(seed, graph.weight.size(), count);
    CHECK(connectivity(nets, parts, count) == connectivity(graph, parts));
    // Neighbours of one layer in pairs: a placement of the groups costs what that of their vertices does.
    std::vector<std::uint32_t> group(graph.weight.size());
    std::uint32_t groups = 0;
    for (std::size_t v = 0; v < group.size(); ++v)
      group[v] = v % 2 == 1 && graph.layer[v] == graph.layer[v - 1] ? groups - 1 : groups++;
    const Parts of_groups = drawn_parts(seed + 1, groups, count);
    Parts of_vertices;
    for (const std::uint32_t g : group) of_vertices.push_back(of_groups[g]);
    const LayeredNets coarse = coarsen(nets, group, groups);
    CHECK(connectivity(coarse, of_groups, count) == connectivity(graph, of_vertices));
    CHECK(std::accumulate(coarse.weight.begin(), coarse.weight.end(), 0.0) ==
          std::accumulate(graph.weight.begin(), graph.weight.end(), 0.0));
  }
}

TEST_CASE("refinement moves what it would move if it looked at every vertex") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const LayeredHypergraph graph = random_network(seed, 12);
    const std::uint32_t count = 2 + seed % 4;
    // Limits of parts that differ, some of them below what the part begins with.
    std::vector<double> limits = shares_of(graph.weight, equal_speeds(count));
    for (std::uint32_t p = 0; p < count; ++p) limits[p] *= 1.05 + 0.2 * (p % 3);
    Parts fast = drawn_parts(seed, graph.weight.size(), count), plain = fast;
    FmRefinement(shorten(graph), fast, limits).run();
    PlainRefinement(graph, plain, limits).run();
    CHECK(fast == plain);
  }
}

TEST_CASE("parts get work in proportion to the speed of their devices, whatever the method") {
  const Speeds speeds{1, 2, 4, 1};
  const double epsilon = 0.1;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const LayeredHypergraph graph = random_network(seed, 200);
    const Parts parts = partition_hypergraph(graph, speeds, epsilon);
    CHECK(imbalance(graph.weight, parts, speeds) <= 1 + epsilon + 1e-9);
    CHECK(imbalance(graph.weight, parts, equal_speeds(4)) > 1.8);  // the fast one has half of all
    for (const Parts& other : {partition_by_layers(graph, speeds), partition_at_random(graph, speeds, seed)})
      CHECK(imbalance(graph.weight, other, speeds) < 1.1);
  }
  // Whole layers, slow device first: {1} {2} {4, 1} would leave the last with 5 for 4; {1} {2} {4} {1} is
  // level.
  const LayeredHypergraph row{{{1, 2, 4, 1}, {}}, {0, 1, 2, 3}};
  CHECK(partition_by_layers(row, speeds) == Parts{0, 1, 2, 3});
  const LayeredHypergraph eight{{std::vector<double>(8, 1), {}}, std::vector<std::uint32_t>(8, 0)};
  CHECK(partition_evenly(eight, speeds) == Parts{0, 1, 1, 2, 2, 2, 2, 3});
}
