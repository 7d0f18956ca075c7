// SPDX-License-Identifier: MIT
#include "strategies/partition/dag.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace convoy::inline partition {

CycleError::CycleError(NodeId on_cycle) : std::runtime_error("the graph has a cycle"), node(on_cycle) {}

Dag::Dag(std::vector<Node> nodes, const std::vector<std::pair<NodeId, NodeId>>& edges,
         const std::vector<std::pair<NodeId, NodeId>>& together) {
  time_us_.reserve(nodes.size());
  output_bytes_.reserve(nodes.size());
  memory_bytes_.reserve(nodes.size());
  for (const Node& node : nodes) {
    time_us_.push_back(node.time_us);
    output_bytes_.push_back(node.output_bytes);
    memory_bytes_.push_back(node.memory_bytes);
    total_time_us_ += node.time_us;
  }
  link(edges);
  sort_topologically();
  form_units(together);
}

void Dag::link(const std::vector<std::pair<NodeId, NodeId>>& edges) {
  child_begin_.assign(size() + 1, 0);
  parent_begin_.assign(size() + 1, 0);
  for (const auto& [from, to] : edges) ++child_begin_[from + 1], ++parent_begin_[to + 1];
  std::partial_sum(child_begin_.begin(), child_begin_.end(), child_begin_.begin());
  std::partial_sum(parent_begin_.begin(), parent_begin_.end(), parent_begin_.begin());
  children_.resize(edges.size());
  parents_.resize(edges.size());
  std::vector<std::uint32_t> next_child(child_begin_.begin(), child_begin_.end() - 1);
  std::vector<std::uint32_t> next_parent(parent_begin_.begin(), parent_begin_.end() - 1);
  for (const auto& [from, to] : edges) {
    children_[next_child[from]++] = to;
    parents_[next_parent[to]++] = from;
  }
  for (NodeId v = 0; v < size(); ++v) {
    std::sort(children_.begin() + child_begin_[v], children_.begin() + child_begin_[v + 1]);
    std::sort(parents_.begin() + parent_begin_[v], parents_.begin() + parent_begin_[v + 1]);
  }
}

void Dag::sort_topologically() {
  std::vector<std::uint32_t> missing(size());
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> next;
  for (NodeId v = 0; v < size(); ++v) {
    missing[v] = static_cast<std::uint32_t>(parents(v).size());
    if (missing[v] == 0) next.push(v);
  }
  order_.reserve(size());
  while (!next.empty()) {
    const NodeId v = next.top();
    next.pop();
    order_.push_back(v);
    for (const NodeId w : children(v))
      if (--missing[w] == 0) next.push(w);
  }
  if (order_.size() == size()) return;
  // Every node that is left has a parent that is left: going up long enough ends on a cycle.
  NodeId v = static_cast<NodeId>(std::find_if(missing.begin(), missing.end(), [](auto m) { return m > 0; }) -
                                 missing.begin());
  for (NodeId step = 0; step < size(); ++step)
    v = *std::find_if(parents(v).begin(), parents(v).end(), [&](NodeId p) { return missing[p] > 0; });
  throw CycleError(v);
}

void Dag::form_units(const std::vector<std::pair<NodeId, NodeId>>& together) {
  std::vector<NodeId> root(size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](NodeId v) {
    while (root[v] != v) v = root[v] = root[root[v]];
    return v;
  };
  const auto join = [&](NodeId a, NodeId b) {
    a = find(a), b = find(b);
    root[std::max(a, b)] = std::min(a, b);
  };
  for (const auto& [a, b] : together) join(a, b);
  for (NodeId v = 0; v < size(); ++v) {
    if (!children(v).empty()) continue;
    const auto is_variable = [&](NodeId p) { return memory_bytes(p) > 0; };
    const auto parents = this->parents(v);
    if (std::count_if(parents.begin(), parents.end(), is_variable) == 1)
      join(v, *std::find_if(parents.begin(), parents.end(), is_variable));
  }
  // A root is the smallest id of its unit, so units are numbered by their first members.
  unit_.resize(size());
  unit_begin_.assign(1, 0);
  for (NodeId v = 0; v < size(); ++v) {
    if (find(v) == v) {
      unit_[v] = unit_count();
      unit_begin_.push_back(0);
    } else {
      unit_[v] = unit_[find(v)];
    }
    ++unit_begin_[unit_[v] + 1];
  }
  std::partial_sum(unit_begin_.begin(), unit_begin_.end(), unit_begin_.begin());
  members_.resize(size());
  std::vector<std::uint32_t> next(unit_begin_.begin(), unit_begin_.end() - 1);
  for (NodeId v = 0; v < size(); ++v) members_[next[unit_[v]]++] = v;
}

std::vector<double> bottom_levels(const Dag& dag, const std::vector<double>& cross_us) {
  std::vector<double> level(dag.size());
  for (auto v = dag.order().rbegin(); v != dag.order().rend(); ++v) {
    double longest = 0;
    for (const NodeId w : dag.children(*v)) longest = std::max(longest, level[w]);
    const bool sends = !cross_us.empty() && !dag.children(*v).empty();
    level[*v] = dag.time_us(*v) + (sends ? cross_us[*v] + longest : longest);
  }
  return level;
}

double lower_bound_us(const Dag& dag, Part parts) {
  double longest = 0;
  for (const double level : bottom_levels(dag)) longest = std::max(longest, level);
  return std::max(longest, dag.total_time_us() / parts);
}

std::vector<double> message_costs(const Dag& dag, const PartLink& link) {
  std::vector<double> costs(dag.size());
  for (NodeId v = 0; v < dag.size(); ++v) costs[v] = link.cost_us(dag.output_bytes(v));
  return costs;
}

}  // namespace convoy::partition
