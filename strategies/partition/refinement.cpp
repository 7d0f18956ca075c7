// SPDX-License-Identifier: MIT
#include "strategies/partition/refinement.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <random>
#include <utility>

namespace convoy::inline partition {
namespace {

constexpr double none = -std::numeric_limits<double>::infinity();

/// One pass of place_in_ready_order.
class Sweep {
 public:
  Sweep(const ReadyOrder& judge, const Placement& prior, double pull)
      : judge_(judge),
        dag_(judge.dag()),
        prior_(prior),
        pull_(pull),
        placement_(dag_.size(), no_part),
        unit_part_(dag_.unit_count(), no_part),
        finish_(dag_.size()),
        free_(judge.parts()),
        ready_(judge.parts()),
        way_(judge.parts()) {}

  Placement run() {
    std::vector<std::uint32_t> missing(dag_.size());
    std::priority_queue<Entry> heap;
    for (NodeId v = 0; v < dag_.size(); ++v) {
      missing[v] = static_cast<std::uint32_t>(dag_.parents(v).size());
      if (missing[v] == 0) heap.push({0, judge_.rank()[v], v});
    }
    while (!heap.empty()) {
      const Entry entry = heap.top();
      heap.pop();
      find_inputs(entry.node);
      const Part part = choose(entry.node);
      if (ready_[part] > entry.time) {  // it runs later than that: others may come first
        heap.push({ready_[part], entry.rank, entry.node});
        continue;
      }
      place(entry.node, part);
      for (const NodeId w : dag_.children(entry.node)) {
        if (--missing[w] > 0) continue;
        find_inputs(w);
        const double earliest = *std::min_element(ready_.begin(), ready_.end());
        heap.push({std::max(entry.time, earliest), judge_.rank()[w], w});
      }
    }
    return std::move(placement_);
  }

 private:
  struct Entry {
    double time;
    NodeId rank, node;
    bool operator<(const Entry& o) const { return time > o.time || (time == o.time && rank > o.rank); }
  };

  void find_inputs(NodeId v) { find_ready(dag_, v, placement_, finish_, judge_.message_us(), ready_); }

  Part choose(NodeId v) {
    if (unit_part_[dag_.unit(v)] != no_part) return unit_part_[dag_.unit(v)];
    if (pull_ > 0) find_ways(v);
    Part best = 0;
    double best_score = 0;
    for (Part part = 0; part < judge_.parts(); ++part) {
      const double start = std::max(free_[part], ready_[part]);
      double score = start;
      if (pull_ > 0 && !dag_.children(v).empty()) {
        const double finish = start + dag_.time_us(v), elsewhere = part == longest_in_ ? second_ : longest_;
        const double end = std::max(finish + way_[part], finish + judge_.message_us()[v] + elsewhere);
        score = pull_ * end + (1 - pull_) * start;
      } else if (pull_ > 0) {
        score = (1 - pull_) * start;
      }
      if (part == 0 || score < best_score) best = part, best_score = score;
    }
    return best;
  }

  /// The longest way to the end that begins with a reader that was on each part, and on any but the part of
  /// the longest of all.
  void find_ways(NodeId v) {
    std::fill(way_.begin(), way_.end(), none);
    longest_ = second_ = none;
    longest_in_ = no_part;
    for (const NodeId w : dag_.children(v)) {
      const Part part = prior_[w];
      const double way = judge_.way_us(w);
      way_[part] = std::max(way_[part], way);
      if (part == longest_in_) {
        longest_ = std::max(longest_, way);
      } else if (way > longest_) {
        second_ = longest_, longest_ = way, longest_in_ = part;
      } else {
        second_ = std::max(second_, way);
      }
    }
  }

  void place(NodeId v, Part part) {
    placement_[v] = unit_part_[dag_.unit(v)] = part;
    finish_[v] = free_[part] = std::max(free_[part], ready_[part]) + dag_.time_us(v);
  }

  const ReadyOrder& judge_;
  const Dag& dag_;
  const Placement& prior_;
  const double pull_;
  Placement placement_, unit_part_;
  std::vector<double> finish_, free_, ready_, way_;
  double longest_ = 0, second_ = 0;
  Part longest_in_ = no_part;
};

/// Descent by moves of single units on the longest chain of the schedule, drawn at random.
class ChainMoves {
 public:
  ChainMoves(ReadyOrder& judge, Placement placement, const Acceptable& acceptable)
      : judge_(judge), dag_(judge.dag()), acceptable_(acceptable), placement_(std::move(placement)) {
    trace();
  }

  Placement run(std::size_t tries) {
    for (std::size_t i = 0; i < tries; ++i) {
      const auto [node, part] = draw();
      if (placement_[node] == part) continue;
      const auto members = dag_.members(dag_.unit(node));
      old_.clear();
      for (const NodeId v : members) old_.push_back(std::exchange(placement_[v], part));
      // Equal makespans are welcome: of several longest chains one is cut at a time.
      const double makespan = judge_.makespan_us(placement_, makespan_ * (1 + 1e-12));
      if (makespan <= makespan_ && (!acceptable_ || acceptable_(placement_)))
        trace();
      else
        for (std::size_t m = 0; m < members.size(); ++m) placement_[members[m]] = old_[m];
    }
    return std::move(placement_);
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  /// A node of the chain to any part, or to a neighbour's part, or a neighbour to its part.
  std::pair<NodeId, Part> draw() {
    const NodeId v = chain_[below(chain_.size())];
    const auto neighbours = below(2) == 0 ? dag_.parents(v) : dag_.children(v);
    if (below(3) == 0 || neighbours.empty()) return {v, static_cast<Part>(below(judge_.parts()))};
    const NodeId other = neighbours[below(neighbours.size())];
    return below(2) == 0 ? std::pair{other, placement_[v]} : std::pair{v, placement_[other]};
  }

  /// Schedules, and follows what each operation waited for back from the one that ends last.
  void trace() {
    makespan_ = judge_.makespan_us(placement_);
    std::vector<NodeId> before(dag_.size()), latest(judge_.parts(), dag_.size());
    NodeId v = judge_.sequence().front();
    for (const NodeId w : judge_.sequence()) {
      before[w] = latest[placement_[w]];
      latest[placement_[w]] = w;
      if (judge_.finish_us()[w] > judge_.finish_us()[v]) v = w;
    }
    chain_.clear();
    while (v != dag_.size()) {
      chain_.push_back(v);
      v = judge_.start_us()[v] > judge_.ready_us(v) ? before[v] : last_input(v);
    }
  }

  NodeId last_input(NodeId v) const {
    NodeId last = dag_.size();
    double latest = -1;
    for (const NodeId u : dag_.parents(v)) {
      const double arrival =
          judge_.finish_us()[u] + (placement_[u] == placement_[v] ? 0 : judge_.message_us()[u]);
      if (arrival > latest) latest = arrival, last = u;
    }
    return last;
  }

  ReadyOrder& judge_;
  const Dag& dag_;
  const Acceptable& acceptable_;
  Placement placement_, old_;
  double makespan_ = 0;
  std::vector<NodeId> chain_;
  std::mt19937_64 random_{1};
};

/// Nodes and edges from which on the graph is placed anew once for each pull, and not three times.
constexpr double large = 5e6;
/// Share of the makespan that is not worth looking for: no placement is shorter than the lower bound.
constexpr double worth_refining = 1e-4;
/// Nodes and edges that all tries of moves together may look at (less than a second), and tries at most:
/// fewer where it takes longer to see whether a placement is acceptable.
constexpr double effort = 5e7, most_tries = 40'000, most_checked_tries = 5'000;

}  // namespace

Placement place_in_ready_order(const ReadyOrder& judge, const Placement& prior, double pull) {
  return Sweep(judge, prior, pull).run();
}

Placement refine(ReadyOrder& judge, Placement placement, const Acceptable& acceptable) {
  double best = judge.makespan_us(placement);
  const auto offer = [&](const Placement& other) {
    const double makespan = judge.makespan_us(other, best);
    if (makespan < best && (!acceptable || acceptable(other))) best = makespan, placement = other;
  };
  const Placement mapped = placement;
  const double size = static_cast<double>(judge.dag().size()) + static_cast<double>(judge.dag().edge_count());
  const double good_enough = (1 + worth_refining) * lower_bound_us(judge.dag(), judge.parts());
  offer(Placement(mapped.size(), 0));  // where messages cost more than they save, one part does it all
  offer(place_in_ready_order(judge, mapped, 0));
  const int passes = size > large ? 1 : 3;
  for (const double pull : {0.3, 0.6, 0.9}) {
    Placement other = mapped;
    for (int pass = 0; pass < passes && best > good_enough; ++pass) {
      other = place_in_ready_order(judge, other, pull);
      offer(other);
    }
  }
  if (best <= good_enough) return placement;
  const double most = acceptable ? most_checked_tries : most_tries;
  return ChainMoves(judge, std::move(placement), acceptable)
      .run(static_cast<std::size_t>(std::min(effort / size, most)));
}

}  // namespace convoy::partition
