// SPDX-License-Identifier: MIT
#include "strategies/partition/hypergraph_partition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "strategies/partition/fm_refinement.h"

namespace convoy {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double mean_weight(const LayeredHypergraph& graph, std::uint32_t count) {
  return std::accumulate(graph.weight.begin(), graph.weight.end(), 0.0) / count;
}

/// Vertices of one layer and part in groups of `size`: the vertex of the coarse hypergraph that each becomes.
std::vector<std::uint32_t> group_blocks(const LayeredHypergraph& graph, const Parts& parts,
                                        std::uint32_t size) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> groups;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> members;
  std::vector<std::uint32_t> coarse(parts.size());
  for (std::uint32_t v = 0; v < parts.size(); ++v) {
    const std::uint32_t index = members[{graph.layer[v], parts[v]}]++;
    coarse[v] =
        groups
            .try_emplace({graph.layer[v], parts[v], index / size}, static_cast<std::uint32_t>(groups.size()))
            .first->second;
  }
  return coarse;
}

/// Groups as vertices; nets with the same pins are one.
LayeredHypergraph coarsen(const LayeredHypergraph& graph, const std::vector<std::uint32_t>& coarse) {
  LayeredHypergraph result;
  const std::size_t n = coarse.empty() ? 0 : *std::max_element(coarse.begin(), coarse.end()) + 1;
  result.weight.resize(n, 0.0);
  result.layer.resize(n);
  for (std::uint32_t v = 0; v < coarse.size(); ++v) {
    result.weight[coarse[v]] += graph.weight[v];
    result.layer[coarse[v]] = graph.layer[v];
  }
  std::map<std::vector<std::uint32_t>, std::size_t> known;
  for (const Hypergraph::Net& net : graph.nets) {
    std::vector<std::uint32_t> pins;
    for (const std::uint32_t pin : net.pins) pins.push_back(coarse[pin]);
    std::sort(pins.begin(), pins.end());
    pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
    if (pins.size() < 2) continue;
    const auto [it, fresh] = known.try_emplace(pins, result.nets.size());
    if (fresh)
      result.nets.push_back({net.cost, std::move(pins)});
    else
      result.nets[it->second].cost += net.cost;
  }
  return result;
}

/// (excess over the limit, connectivity, imbalance): less is better.
std::tuple<double, double, double> quality(const LayeredHypergraph& graph, const Parts& parts,
                                           std::uint32_t count, double epsilon) {
  const double unbalanced = imbalance(graph, parts, count);
  return {std::max(0.0, unbalanced - (1 + epsilon)), connectivity(graph, parts), unbalanced};
}

/// Borders in a row of `weight`: minimises combine(cost so far, cost of the next part) over contiguous parts.
template <class PartCost, class Combine>
std::vector<std::size_t> best_borders(std::size_t n, std::uint32_t count, PartCost part_cost,
                                      Combine combine) {
  std::vector<std::vector<double>> best(count + 1, std::vector<double>(n + 1, infinity));
  std::vector<std::vector<std::size_t>> from(count + 1, std::vector<std::size_t>(n + 1, 0));
  best[0][0] = 0;
  for (std::uint32_t k = 1; k <= count; ++k)
    for (std::size_t end = 0; end <= n; ++end)
      for (std::size_t begin = end + 1; begin-- > 0;) {
        const double cost = part_cost(begin, end);
        if (cost == infinity) break;  // longer parts cost no less
        const double total = combine(best[k - 1][begin], cost);
        if (total < best[k][end]) best[k][end] = total, from[k][end] = begin;
      }
  std::vector<std::size_t> borders(count + 1, n);
  if (best[count][n] == infinity) return {};
  for (std::uint32_t k = count; k > 0; --k) borders[k - 1] = from[k][borders[k]];
  return borders;
}

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums{0.0};
  for (const double value : values) sums.push_back(sums.back() + value);
  return sums;
}

Parts parts_between(const std::vector<std::size_t>& borders, std::size_t n) {
  Parts parts(n);
  for (std::uint32_t k = 0; k + 1 < borders.size(); ++k)
    for (std::size_t v = borders[k]; v < borders[k + 1]; ++v) parts[v] = k;
  return parts;
}

}  // namespace

Parts partition_by_layers(const LayeredHypergraph& graph, std::uint32_t count) {
  if (graph.layer.empty()) return {};
  std::vector<double> layer_weight(*std::max_element(graph.layer.begin(), graph.layer.end()) + 1, 0.0);
  for (std::size_t v = 0; v < graph.layer.size(); ++v) layer_weight[graph.layer[v]] += graph.weight[v];
  const std::vector<double> sums = prefix_sums(layer_weight);
  const std::vector<std::size_t> borders = best_borders(
      layer_weight.size(), count, [&](std::size_t begin, std::size_t end) { return sums[end] - sums[begin]; },
      [](double a, double b) { return std::max(a, b); });
  const Parts of_layer = parts_between(borders, layer_weight.size());
  Parts parts;
  for (const std::uint32_t layer : graph.layer) parts.push_back(of_layer[layer]);
  return parts;
}

Parts partition_evenly(const LayeredHypergraph& graph, std::uint32_t count) {
  std::map<std::uint32_t, std::uint32_t> blocks, next;
  for (const std::uint32_t layer : graph.layer) ++blocks[layer];
  Parts parts;
  for (const std::uint32_t layer : graph.layer)
    parts.push_back(static_cast<std::uint32_t>(std::uint64_t{next[layer]++} * count / blocks[layer]));
  return parts;
}

Parts partition_at_random(const LayeredHypergraph& graph, std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(graph.weight.size());
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i)  // std::shuffle differs from library to library
    std::swap(order[i - 1], order[random() % i]);
  std::vector<double> weight(count, 0.0);
  Parts parts(graph.weight.size());
  for (const std::uint32_t v : order) {
    parts[v] = static_cast<std::uint32_t>(std::min_element(weight.begin(), weight.end()) - weight.begin());
    weight[parts[v]] += graph.weight[v];
  }
  return parts;
}

Parts partition_in_order(const LayeredHypergraph& graph, std::uint32_t count, double epsilon) {
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
  for (double limit = (1 + epsilon) * mean_weight(graph, count);; limit *= 1.05) {
    const std::vector<std::size_t> borders = best_borders(
        n, count,
        [&](std::size_t begin, std::size_t end) {
          if (sums[end] - sums[begin] > limit * (1 + 1e-12)) return infinity;
          return end < n ? spanning[end] : 0.0;
        },
        [](double a, double b) { return a + b; });
    if (!borders.empty()) return parts_between(borders, n);
  }
}

Parts refine(const LayeredHypergraph& graph, Parts parts, std::uint32_t count, double epsilon) {
  const double limit = (1 + epsilon) * mean_weight(graph, count) * (1 + 1e-12);
  std::map<std::uint32_t, std::uint32_t> blocks;
  for (const std::uint32_t layer : graph.layer) ++blocks[layer];
  std::uint32_t most = 1;
  for (const auto& [layer, number] : blocks) most = std::max(most, number);
  Parts best = parts;
  for (std::uint32_t size = most;; size = (size + 1) / 2) {
    const std::vector<std::uint32_t> coarse = group_blocks(graph, parts, size);
    const LayeredHypergraph level = coarsen(graph, coarse);
    Parts level_parts(level.weight.size());
    for (std::size_t v = 0; v < parts.size(); ++v) level_parts[coarse[v]] = parts[v];
    FmRefinement(level, level_parts, count, limit).run();
    for (std::size_t v = 0; v < parts.size(); ++v) parts[v] = level_parts[coarse[v]];
    if (quality(graph, parts, count, epsilon) < quality(graph, best, count, epsilon)) best = parts;
    if (size == 1) return best;
  }
}

Parts partition_hypergraph(const LayeredHypergraph& graph, std::uint32_t count, double epsilon) {
  Parts best;
  for (Parts start : {partition_in_order(graph, count, epsilon), partition_by_layers(graph, count),
                      partition_evenly(graph, count)}) {
    Parts parts = refine(graph, std::move(start), count, epsilon);
    if (best.empty() || quality(graph, parts, count, epsilon) < quality(graph, best, count, epsilon))
      best = std::move(parts);
  }
  return best;
}

}  // namespace convoy
