// SPDX-License-Identifier: MIT
#include "strategies/partition/slicing.h"

#include <algorithm>
#include <limits>

#include "strategies/partition/longest_first.h"

namespace convoy::inline partition {
namespace {

constexpr std::uint32_t unvisited = 0xffffffff;
constexpr double local_edge_us = 1;  ///< what an edge within a primary cluster costs, for the levels

class Slicer {
 public:
  explicit Slicer(const PartitionTask& task)
      : task_(task), dag_(task.dag), message_(message_costs(dag_, task.link)) {
    slices_.cluster_of.assign(dag_.size(), unvisited);
  }

  Slices run() {
    measure();
    find_primaries();
    find_levels();
    find_secondaries();
    return std::move(slices_);
  }

 private:
  void measure() {
    double messages = 0;
    for (NodeId v = 0; v < dag_.size(); ++v)
      messages += message_[v] * static_cast<double>(dag_.children(v).size());
    if (dag_.total_time_us() > 0) slices_.communication = messages / dag_.total_time_us();
  }

  /// The path from `start` along the unvisited children with the longest ways to the end is a cluster.
  void take_path(NodeId start, const std::vector<double>& level) {
    const auto number = static_cast<std::uint32_t>(slices_.clusters.size());
    slices_.clusters.emplace_back();
    for (NodeId v = start; v != dag_.size();) {
      slices_.cluster_of[v] = number;
      slices_.clusters.back().push_back(v);
      NodeId next = dag_.size();
      for (const NodeId w : dag_.children(v))
        if (slices_.cluster_of[w] == unvisited && (next == dag_.size() || level[w] > level[next])) next = w;
      v = next;
    }
  }

  void find_primaries() {
    std::vector<double> level(dag_.size());  // longest ways along unvisited nodes; taken: visited
    constexpr double taken = -std::numeric_limits<double>::infinity();
    for (Part k = 0; k < task_.parts; ++k) {
      NodeId start = dag_.size();
      for (auto v = dag_.order().rbegin(); v != dag_.order().rend(); ++v) {
        if (level[*v] == taken) continue;
        double longest = 0;
        for (const NodeId w : dag_.children(*v)) longest = std::max(longest, message_[*v] + level[w]);
        level[*v] = dag_.time_us(*v) + longest;
        if (start == dag_.size() || level[*v] >= level[start]) start = *v;
      }
      if (start == dag_.size()) break;
      take_path(start, level);
      for (const NodeId v : slices_.clusters.back()) level[v] = taken;
      ++slices_.primaries;
    }
    double first = 0;
    for (const NodeId v : slices_.clusters.front()) first += dag_.time_us(v);
    if (first > 0) slices_.parallelism = dag_.total_time_us() / first;
  }

  double edge_us(NodeId from, NodeId to) const {
    const std::uint32_t cluster = slices_.cluster_of[from];
    return cluster != unvisited && cluster == slices_.cluster_of[to] ? local_edge_us : message_[from];
  }

  void find_levels() {
    slices_.top_us.assign(dag_.size(), 0);
    slices_.weight_us.assign(dag_.size(), 0);
    for (const NodeId v : dag_.order())
      for (const NodeId w : dag_.children(v))
        slices_.top_us[w] = std::max(slices_.top_us[w], slices_.top_us[v] + dag_.time_us(v) + edge_us(v, w));
    bottom_.assign(dag_.size(), 0);
    for (auto v = dag_.order().rbegin(); v != dag_.order().rend(); ++v) {
      for (const NodeId w : dag_.children(*v))
        bottom_[*v] = std::max(bottom_[*v], edge_us(*v, w) + bottom_[w]);
      bottom_[*v] += dag_.time_us(*v);
    }
    for (NodeId v = 0; v < dag_.size(); ++v) slices_.weight_us[v] = slices_.top_us[v] + bottom_[v];
  }

  void find_secondaries() {
    // How many nodes still come after a node, as a share of the deepest way: among equally critical ones the
    // earliest starts a cluster.
    std::vector<double> depth(dag_.size());
    double deepest = 1;
    for (auto v = dag_.order().rbegin(); v != dag_.order().rend(); ++v) {
      for (const NodeId w : dag_.children(*v)) depth[*v] = std::max(depth[*v], depth[w] + 1);
      deepest = std::max(deepest, depth[*v]);
    }
    std::vector<NodeId> starts;
    for (const NodeId v : dag_.order())
      if (slices_.cluster_of[v] == unvisited) starts.push_back(v);
    const auto key = [&](NodeId v) { return slices_.weight_us[v] + depth[v] / deepest; };
    for (const NodeId v : longest_first(starts, key))
      if (slices_.cluster_of[v] == unvisited) take_path(v, bottom_);
  }

  const PartitionTask& task_;
  const Dag& dag_;
  std::vector<double> message_, bottom_;
  Slices slices_;
};

}  // namespace

Slices slice(const PartitionTask& task) { return Slicer(task).run(); }

}  // namespace convoy::partition
