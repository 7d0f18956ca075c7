// SPDX-License-Identifier: MIT
#include "strategies/partition/hypergraph_partition.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "strategies/partition/fm_refinement.h"
#include "strategies/partition/layered_nets.h"

namespace convoy::inline partition {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Groups {
  std::vector<std::uint32_t> of;  ///< by vertex
  std::uint32_t count = 0;
};

/// Vertices of one layer and part in groups of `size`, numbered by their first vertices.
Groups group_blocks(const LayeredNets& nets, const Parts& parts, std::uint32_t size) {
  struct Open {
    std::uint32_t group = 0, members = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Open> open;  // by layer and part
  Groups groups{std::vector<std::uint32_t>(parts.size()), 0};
  for (std::uint32_t v = 0; v < parts.size(); ++v) {
    Open& last = open[{nets.layer[v], parts[v]}];
    if (last.members++ % size == 0) last.group = groups.count++;
    groups.of[v] = last.group;
  }
  return groups;
}

/// (excess over the limit, connectivity, imbalance): less is better.
using Quality = std::tuple<double, double, double>;
Quality quality(const LayeredNets& nets, const Parts& parts, const Speeds& speeds, double epsilon) {
  const double unbalanced = imbalance(nets.weight, parts, speeds);
  return {std::max(0.0, unbalanced - (1 + epsilon)),
          connectivity(nets, parts, static_cast<Part>(speeds.size())), unbalanced};
}

/// Of each part's end the best begin, and what that costs, part by part.
struct Borders {
  std::vector<std::vector<std::size_t>> from;  ///< by part and end
  double cost;                                 ///< of the best row of parts
};

/// first[k]: where part k begins.
std::vector<std::size_t> follow(const Borders& borders, std::size_t n) {
  std::vector<std::size_t> first(borders.from.size() + 1, n);
  for (std::size_t k = borders.from.size(); k > 0; --k) first[k - 1] = borders.from[k - 1][first[k]];
  return first;
}

/// Borders in a row of weights (as their sums): least weight over speed of the part where that is greatest.
Borders level_borders(const std::vector<double>& sums, const Speeds& speeds) {
  const std::size_t n = sums.size() - 1;
  Borders borders{std::vector<std::vector<std::size_t>>(speeds.size(), std::vector<std::size_t>(n + 1, 0)),
                  0};
  std::vector<double> before(n + 1, infinity), now(n + 1);
  before[0] = 0;
  for (std::size_t k = 0; k < speeds.size(); ++k) {
    std::fill(now.begin(), now.end(), infinity);
    for (std::size_t end = 0; end <= n; ++end)
      for (std::size_t begin = end + 1; begin-- > 0;) {
        const double own = (sums[end] - sums[begin]) / speeds[k];
        const double most = std::max(before[begin], own);
        if (most < now[end]) now[end] = most, borders.from[k][end] = begin;
        if (own >= now[end]) break;  // longer parts have no less
      }
    std::swap(before, now);
  }
  borders.cost = before[n];
  return borders;
}

/// Borders in a row of weights (as their sums): least sum of `border_cost` over the ends of the parts but the
/// last, no part heavier than its limit. Of the begins that a part may have, a queue keeps those that a later
/// one does not beat: each is looked at once. Infinite cost where it cannot be.
Borders cheapest_borders(const std::vector<double>& sums, const std::vector<double>& border_cost,
                         const std::vector<double>& limits) {
  const std::size_t n = sums.size() - 1;
  Borders borders{std::vector<std::vector<std::size_t>>(limits.size(), std::vector<std::size_t>(n + 1, 0)),
                  0};
  std::vector<double> before(n + 1, infinity), now(n + 1);
  before[0] = 0;
  for (std::size_t k = 0; k < limits.size(); ++k) {
    std::deque<std::size_t> begins;  // their costs grow
    for (std::size_t end = 0; end <= n; ++end) {
      while (!begins.empty() && before[begins.back()] >= before[end]) begins.pop_back();
      begins.push_back(end);
      while (sums[end] - sums[begins.front()] > limits[k]) begins.pop_front();
      now[end] = before[begins.front()] + (end < n ? border_cost[end] : 0.0);
      borders.from[k][end] = begins.front();
    }
    std::swap(before, now);
  }
  borders.cost = before[n];
  return borders;
}

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums{0.0};
  for (const double value : values) sums.push_back(sums.back() + value);
  return sums;
}

Parts parts_between(const std::vector<std::size_t>& first) {
  Parts parts(first.back());
  for (std::uint32_t k = 0; k + 1 < first.size(); ++k)
    for (std::size_t v = first[k]; v < first[k + 1]; ++v) parts[v] = k;
  return parts;
}

/// What it refines, and what that is worth then.
Parts refine_nets(const LayeredNets& nets, Parts parts, const Speeds& speeds, double epsilon) {
  std::vector<double> limits = shares_of(nets.weight, speeds);
  for (double& limit : limits) limit *= (1 + epsilon) * (1 + 1e-12);
  std::size_t most = 1;
  for (const std::vector<std::uint32_t>& layer : nets.members) most = std::max(most, layer.size());
  Parts best = parts;
  Quality of_best = quality(nets, best, speeds, epsilon);
  for (auto size = static_cast<std::uint32_t>(most);; size = (size + 1) / 2) {
    const Groups groups = group_blocks(nets, parts, size);
    const LayeredNets level = coarsen(nets, groups.of, groups.count);
    Parts level_parts(groups.count);
    for (std::size_t v = 0; v < parts.size(); ++v) level_parts[groups.of[v]] = parts[v];
    FmRefinement(level, level_parts, limits).run();
    for (std::size_t v = 0; v < parts.size(); ++v) parts[v] = level_parts[groups.of[v]];
    if (const Quality now = quality(level, level_parts, speeds, epsilon); now < of_best)
      best = parts, of_best = now;
    if (size == 1) return best;
  }
}

}  // namespace

Parts partition_by_layers(const LayeredHypergraph& graph, const Speeds& speeds) {
  if (graph.layer.empty()) return {};
  std::vector<double> layer_weight(*std::max_element(graph.layer.begin(), graph.layer.end()) + 1, 0.0);
  for (std::size_t v = 0; v < graph.layer.size(); ++v) layer_weight[graph.layer[v]] += graph.weight[v];
  const std::vector<double> sums = prefix_sums(layer_weight);
  const Parts of_layer = parts_between(follow(level_borders(sums, speeds), layer_weight.size()));
  Parts parts;
  for (const std::uint32_t layer : graph.layer) parts.push_back(of_layer[layer]);
  return parts;
}

Parts partition_evenly(const LayeredHypergraph& graph, const Speeds& speeds) {
  std::map<std::uint32_t, std::uint32_t> blocks, next;
  for (const std::uint32_t layer : graph.layer) ++blocks[layer];
  const std::vector<double> ends = prefix_sums(speeds);
  Parts parts;
  for (const std::uint32_t layer : graph.layer) {
    const double at = ends.back() * next[layer]++ / blocks[layer];
    const auto end = std::upper_bound(ends.begin() + 1, ends.end() - 1, at);
    parts.push_back(static_cast<std::uint32_t>(end - ends.begin() - 1));
  }
  return parts;
}

Parts partition_at_random(const LayeredHypergraph& graph, const Speeds& speeds, std::uint64_t seed) {
  std::vector<std::uint32_t> order(graph.weight.size());
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i)  // std::shuffle differs from library to library
    std::swap(order[i - 1], order[random() % i]);
  std::vector<double> filled(speeds.size(), 0.0);
  Parts parts(graph.weight.size());
  for (const std::uint32_t v : order) {
    parts[v] = static_cast<std::uint32_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
    filled[parts[v]] += graph.weight[v] / speeds[parts[v]];
  }
  return parts;
}

Parts partition_in_order(const LayeredHypergraph& graph, const Speeds& speeds, double epsilon) {
  const std::size_t n = graph.weight.size();
  const std::vector<double> sums = prefix_sums(graph.weight);
  std::vector<double> change(n + 2,
                             0.0);  // of the cost of the nets that span a border, from border to border
  for (const Hypergraph::Net& net : graph.nets) {
    const auto [low, high] = std::minmax_element(net.pins.begin(), net.pins.end());
    change[*low + 1] += net.cost;
    change[*high + 1] -= net.cost;
  }
  std::vector<double> spanning(n + 1, 0.0);
  for (std::size_t b = 1; b <= n; ++b) spanning[b] = spanning[b - 1] + change[b];
  std::vector<double> limits = shares_of(graph.weight, speeds);
  for (double& limit : limits) limit *= (1 + epsilon) * (1 + 1e-12);
  for (;;) {
    const Borders borders = cheapest_borders(sums, spanning, limits);
    if (borders.cost < infinity) return parts_between(follow(borders, n));
    for (double& limit : limits) limit *= 1.05;
  }
}

Parts refine(const LayeredHypergraph& graph, Parts parts, const Speeds& speeds, double epsilon) {
  return refine_nets(shorten(graph), std::move(parts), speeds, epsilon);
}

Parts partition_hypergraph(const LayeredHypergraph& graph, const Speeds& speeds, double epsilon,
                           bool from_layers) {
  const LayeredNets nets = shorten(graph);
  Parts best;
  Quality of_best;
  std::vector<Parts> starts{partition_in_order(graph, speeds, epsilon)};
  if (from_layers) starts.push_back(partition_by_layers(graph, speeds));
  starts.push_back(partition_evenly(graph, speeds));
  for (Parts& start : starts) {
    Parts parts = refine_nets(nets, std::move(start), speeds, epsilon);
    const Quality now = quality(nets, parts, speeds, epsilon);
    if (best.empty() || now < of_best) best = std::move(parts), of_best = now;
  }
  return best;
}

}  // namespace convoy::partition
