// SPDX-License-Identifier: MIT
#include "strategies/partition/refinement.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "strategies/partition/largest_of_parts.h"
#include "strategies/partition/ready_heap.h"

namespace convoy::inline partition {
namespace {

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
        score_(judge.parts()) {}

  Placement run() {
    std::vector<std::uint32_t> missing(dag_.size());
    for (NodeId v = 0; v < dag_.size(); ++v) {
      missing[v] = static_cast<std::uint32_t>(dag_.parents(v).size());
      if (missing[v] == 0) wait(v, 0);
    }
    while (!heap_.empty()) {
      const ReadyHeap::Entry entry = heap_.pop();
      const Waiting& waiting = waiting_[entry.item];
      const NodeId v = waiting.node;
      const Part part = choose(waiting);
      const double ready_us = waiting.ready.on_us(part);
      if (ready_us > entry.time_us) {  // it runs later than that: others may come first
        heap_.push({ready_us, entry.rank, entry.item});
        continue;
      }
      placement_[v] = unit_part_[dag_.unit(v)] = part;
      finish_[v] = free_[part] = std::max(free_[part], ready_us) + dag_.time_us(v);
      unused_.push_back(entry.item);
      for (const NodeId w : dag_.children(v))
        if (--missing[w] == 0) wait(w, entry.time_us);
    }
    return std::move(placement_);
  }

 private:
  /// A node whose inputs are all placed, and what does not change any more until it is.
  struct Waiting {
    NodeId node;
    InputsReady ready;
    LargestOfParts ways_us;  ///< to the end, by the parts where its readers were
  };
  void wait(NodeId v, double time_us) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(waiting_.size()));
      waiting_.emplace_back();
    }
    const std::uint32_t place = unused_.back();
    unused_.pop_back();
    const InputsReady ready = find_ready(dag_, v, placement_, finish_, judge_.message_us());
    waiting_[place] = {v, ready, pull_ > 0 ? find_ways_us(v) : LargestOfParts{}};
    heap_.push({std::max(time_us, ready.at_sender_us), judge_.rank(v), place});
  }

  LargestOfParts find_ways_us(NodeId v) const {
    LargestOfParts ways_us;
    for (const NodeId w : dag_.children(v)) ways_us.add(prior_[w], judge_.way_us(w));
    return ways_us;
  }

  /// The part with the lowest score; the first of them.
  Part choose(const Waiting& waiting) {
    const Part fixed = unit_part_[dag_.unit(waiting.node)];
    if (fixed != no_part) return fixed;
    const InputsReady& ready = waiting.ready;
    const LargestOfParts& ways_us = waiting.ways_us;
    const double time_us = dag_.time_us(waiting.node), message_us = judge_.message_us()[waiting.node];
    const auto score = [&](Part part, double ready_us, bool beside_readers) {
      const double start_us = std::max(free_[part], ready_us);
      if (ways_us.part == no_part) return (1 - pull_) * start_us;
      const double finish_us = start_us + time_us;
      const double end_us =
          beside_readers ? std::max(finish_us + ways_us.largest, finish_us + message_us + ways_us.of_others)
                         : finish_us + message_us + ways_us.largest;
      return pull_ * end_us + (1 - pull_) * start_us;
    };
    for (Part part = 0; part < judge_.parts(); ++part) score_[part] = score(part, ready.elsewhere_us, false);
    for (const Part part : {ready.sender, ways_us.part})
      if (part != no_part) score_[part] = score(part, ready.on_us(part), part == ways_us.part);
    return static_cast<Part>(std::min_element(score_.begin(), score_.end()) - score_.begin());
  }

  const ReadyOrder& judge_;
  const Dag& dag_;
  const Placement& prior_;
  const double pull_;
  Placement placement_, unit_part_;
  std::vector<double> finish_, free_, score_;
  ReadyHeap heap_;  ///< places in waiting_
  std::vector<Waiting> waiting_;
  std::vector<std::uint32_t> unused_;  ///< places in waiting_ without one
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
