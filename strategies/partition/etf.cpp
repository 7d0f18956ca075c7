// SPDX-License-Identifier: MIT
// Earliest task first: Hwang, Chow, Anger, Lee: Scheduling precedence graphs in systems with interprocessor
// communication times, SIAM J. Comput. 18(2), 1989. With a limit of memory it is m-ETF: Jeon et al.: Baechi,
// SoCC 2020: a part without room for an operation is none for it.
// Small communication times: Hanen, Munier: An approximation algorithm for scheduling dependent tasks on m
// processors with small communication delays, ETFA 1995; with a limit of memory m-SCT of Baechi. Every
// operation has at most one favourite child, and is that of at most one: what is not sent between them.
// Theirs come from a linear program that makes the longest way shortest; here the edges on the longest ways
// take each other's ends first.
#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "strategies/partition/method.h"

namespace convoy::inline partition {
namespace {

constexpr NodeId nobody = 0xffffffff;

class EarliestTaskFirst {
 public:
  /// @param favourite by node its favourite child, `nobody` where it has none; empty: ETF
  EarliestTaskFirst(const PartitionTask& task, std::vector<NodeId> favourite)
      : task_(task),
        dag_(task.dag),
        message_(message_costs(dag_, task.link)),
        way_(bottom_levels(dag_)),
        placement_(dag_.size(), no_part),
        unit_part_(dag_.unit_count(), no_part),
        waiting_(task.parts),
        coming_(task.parts),
        free_(task.parts),
        used_bytes_(task.parts),
        favourite_(std::move(favourite)),
        last_(task.parts, nobody) {}

  PartitionAnswer run() {
    schedule_.start_us.resize(dag_.size());
    schedule_.finish_us.resize(dag_.size());
    offered_.resize(dag_.size(), false);
    std::vector<std::uint32_t> missing(dag_.size());
    for (NodeId v = 0; v < dag_.size(); ++v) {
      missing[v] = static_cast<std::uint32_t>(dag_.parents(v).size());
      if (missing[v] == 0) offer(v);
    }
    for (NodeId placed = 0; placed < dag_.size(); ++placed) {
      const auto [node, part] = earliest();
      place(node, part);
      for (const NodeId w : dag_.children(node))
        if (--missing[w] == 0) offer(w);
    }
    return {std::move(placement_), std::move(schedule_)};
  }

 private:
  struct Waiting {  // its inputs are there: the longest way to the end first, then the smaller id
    double way;
    NodeId node;
    bool operator<(const Waiting& o) const { return way < o.way || (way == o.way && node > o.node); }
  };
  struct Coming {  // its inputs will be there: the earliest first, then as above
    double ready;
    Waiting waiting;
    bool operator<(const Coming& o) const {
      return ready > o.ready || (ready == o.ready && waiting < o.waiting);
    }
  };

  /// What a part has to have room for.
  double bytes(NodeId v) const { return std::max(dag_.memory_bytes(v), dag_.output_bytes(v)); }
  bool has_room(NodeId v, Part part) const {
    return !task_.memory_bytes || used_bytes_[part] + bytes(v) <= *task_.memory_bytes;
  }

  /// A node whose inputs are all made, to every part that it could go to.
  void offer(NodeId v) {
    offered_[v] = true;
    const InputsReady ready = find_ready(dag_, v, placement_, schedule_.finish_us, message_);
    const Part fixed = unit_part_[dag_.unit(v)];
    for (Part part = 0; part < task_.parts; ++part)
      if (fixed == no_part || part == fixed) coming_[part].push({ready.on_us(part), {way_[v], v}});
  }

  /// The pair that can start first; of those that can at the same time, that with the longest way to the end.
  std::pair<NodeId, Part> earliest() {
    std::pair<NodeId, Part> best{dag_.size(), 0};
    double best_start = std::numeric_limits<double>::infinity(), best_way = 0;
    for (Part part = 0; part < task_.parts; ++part) {
      drop_taken(part);
      const bool now = !waiting_[part].empty();
      if (!now && coming_[part].empty()) continue;
      Waiting first = now ? waiting_[part].top() : coming_[part].top().waiting;
      double start = now ? free_[part] : coming_[part].top().ready;
      prefer_favourite(part, first, start);
      if (start < best_start || (start == best_start && first.way > best_way))
        best = {first.node, part}, best_start = start, best_way = first.way;
    }
    return best.first == dag_.size() ? largest_room() : best;
  }

  /// The favourite child of what ran last on the part, if it can start before its input would be elsewhere.
  void prefer_favourite(Part part, Waiting& first, double& start) {
    const NodeId last = last_[part];
    if (favourite_.empty() || last == nobody || favourite_[last] == nobody) return;
    const NodeId child = favourite_[last];
    const Part fixed = unit_part_[dag_.unit(child)];
    if (placement_[child] != no_part || !offered_[child] || (fixed != no_part && fixed != part)) return;
    if (fixed == no_part && !has_room(child, part)) return;
    const InputsReady ready = find_ready(dag_, child, placement_, schedule_.finish_us, message_);
    const double then = std::max(free_[part], ready.on_us(part));
    if (then > schedule_.finish_us[last] + message_[last]) return;
    first = {way_[child], child};
    start = then;
  }

  /// What has run elsewhere, or has no room here, goes; what has its inputs by when the part is free waits.
  void drop_taken(Part part) {
    const auto gone = [&](NodeId v) {
      const Part fixed = unit_part_[dag_.unit(v)];
      if (placement_[v] != no_part || (fixed != no_part && fixed != part)) return true;
      if (fixed != no_part || has_room(v, part)) return false;
      refused_.push_back(v);
      return true;
    };
    while (!coming_[part].empty()) {
      const Coming next = coming_[part].top();
      if (!gone(next.waiting.node) && next.ready > free_[part]) break;
      coming_[part].pop();
      if (!gone(next.waiting.node)) waiting_[part].push(next.waiting);
    }
    while (!waiting_[part].empty() && gone(waiting_[part].top().node)) waiting_[part].pop();
  }

  /// Where no part has room for what is left: the node refused first, to the emptiest part.
  std::pair<NodeId, Part> largest_room() {
    while (placement_[refused_.front()] != no_part) refused_.pop_front();
    const auto emptiest = std::min_element(used_bytes_.begin(), used_bytes_.end()) - used_bytes_.begin();
    return {refused_.front(), static_cast<Part>(emptiest)};
  }

  void place(NodeId v, Part part) {
    const InputsReady ready = find_ready(dag_, v, placement_, schedule_.finish_us, message_);
    placement_[v] = part;
    last_[part] = v;
    if (unit_part_[dag_.unit(v)] == no_part && dag_.members(dag_.unit(v)).size() > 1) {
      unit_part_[dag_.unit(v)] = part;
      for (const NodeId w : dag_.members(dag_.unit(v))) used_bytes_[part] += bytes(w);
    } else if (dag_.members(dag_.unit(v)).size() == 1) {
      used_bytes_[part] += bytes(v);
    }
    const double start = schedule_.start_us[v] = std::max(free_[part], ready.on_us(part));
    free_[part] = schedule_.finish_us[v] = start + dag_.time_us(v);
    schedule_.makespan_us = std::max(schedule_.makespan_us, free_[part]);
  }

  const PartitionTask& task_;
  const Dag& dag_;
  std::vector<double> message_, way_;
  Placement placement_, unit_part_;
  Schedule schedule_;
  std::vector<std::priority_queue<Waiting>> waiting_;  ///< by part
  std::vector<std::priority_queue<Coming>> coming_;    ///< by part
  std::deque<NodeId> refused_;                         ///< by some part, for want of room
  std::vector<double> free_, used_bytes_;
  std::vector<NodeId> favourite_, last_;  ///< by node; by part, what ran last
  std::vector<bool> offered_;             ///< its inputs are made
};

/// Edges by the longest way through them, longest first (ties: smaller ids), each taken if its producer has
/// no favourite child yet and its reader is nobody's.
std::vector<NodeId> favourite_children(const Dag& dag, const std::vector<double>& message) {
  const std::vector<double> below = bottom_levels(dag, message);
  std::vector<double> above(dag.size(), 0);  // longest way to a node's start
  struct Edge {
    double way;
    NodeId from, to;
  };
  std::vector<Edge> edges;
  for (const NodeId v : dag.order())
    for (const NodeId w : dag.children(v)) {
      const double arrives = above[v] + dag.time_us(v) + message[v];
      above[w] = std::max(above[w], arrives);
      edges.push_back({arrives + below[w], v, w});
    }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tuple(-a.way, a.from, a.to) < std::tuple(-b.way, b.from, b.to);
  });
  std::vector<NodeId> favourite(dag.size(), nobody);
  std::vector<bool> taken(dag.size(), false);
  for (const Edge& edge : edges) {
    if (favourite[edge.from] != nobody || taken[edge.to]) continue;
    favourite[edge.from] = edge.to;
    taken[edge.to] = true;
  }
  return favourite;
}

}  // namespace

PartitionAnswer partition_etf(const PartitionTask& task) { return EarliestTaskFirst(task, {}).run(); }

PartitionAnswer partition_sct(const PartitionTask& task) {
  return EarliestTaskFirst(task, favourite_children(task.dag, message_costs(task.dag, task.link))).run();
}

}  // namespace convoy::partition
