// SPDX-License-Identifier: MIT
#include "strategies/partition/hypergraph.h"

#include <algorithm>
#include <numeric>

namespace convoy::inline partition {
namespace {

/// Number of different parts among a net's pins.
std::uint32_t parts_of(const Hypergraph::Net& net, const Placement& parts, std::vector<std::uint32_t>& seen,
                       std::uint32_t stamp) {
  std::uint32_t found = 0;
  for (const std::uint32_t pin : net.pins) {
    if (parts[pin] >= seen.size()) seen.resize(parts[pin] + 1, 0);
    if (seen[parts[pin]] != stamp) seen[parts[pin]] = stamp, ++found;
  }
  return found;
}

template <class Value>
double sum_over_nets(const Hypergraph& graph, const Placement& parts, Value value) {
  std::vector<std::uint32_t> seen;
  double sum = 0;
  std::uint32_t stamp = 0;
  for (const Hypergraph::Net& net : graph.nets) sum += net.cost * value(parts_of(net, parts, seen, ++stamp));
  return sum;
}

}  // namespace

double connectivity(const Hypergraph& graph, const Placement& parts) {
  return sum_over_nets(graph, parts, [](std::uint32_t found) { return found > 0 ? found - 1.0 : 0.0; });
}

double cut(const Hypergraph& graph, const Placement& parts) {
  return sum_over_nets(graph, parts, [](std::uint32_t found) { return found > 1 ? 1.0 : 0.0; });
}

std::vector<double> shares_of(const std::vector<double>& weight, const Speeds& speeds) {
  const double all = std::accumulate(weight.begin(), weight.end(), 0.0);
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<double> shares;
  for (const double speed : speeds) shares.push_back(all * speed / sum);
  return shares;
}

double imbalance(const std::vector<double>& weight, const Placement& parts, const Speeds& speeds) {
  const std::vector<double> shares = shares_of(weight, speeds);
  std::vector<double> has(speeds.size(), 0.0);
  for (std::size_t v = 0; v < parts.size(); ++v) has[parts[v]] += weight[v];
  double worst = 0;
  for (std::size_t p = 0; p < has.size(); ++p)
    worst = std::max(worst, shares[p] > 0 ? has[p] / shares[p] : 1);
  return worst;
}

Hypergraph hypergraph_of(const Dag& dag) {
  Hypergraph graph;
  graph.weight.reserve(dag.size());
  for (NodeId v = 0; v < dag.size(); ++v) {
    graph.weight.push_back(dag.total_time_us() > 0 ? dag.time_us(v) : 1);
    const auto readers = dag.children(v);
    if (readers.empty() || dag.output_bytes(v) == 0) continue;
    Hypergraph::Net& net = graph.nets.emplace_back(Hypergraph::Net{dag.output_bytes(v), {v}});
    net.pins.insert(net.pins.end(), readers.begin(), readers.end());
  }
  return graph;
}

}  // namespace convoy::partition
