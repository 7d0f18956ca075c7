// SPDX-License-Identifier: MIT
#include "strategies/partition/memory_phase.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "strategies/partition/memory.h"
#include "strategies/partition/refinement.h"

namespace convoy::inline partition {
namespace {

/// A placement that is looked at for its memory.
struct Trial {
  Placement placement;
  double fullest_bytes;
};

double fullest_part(const MemoryUse& use) {
  return *std::max_element(use.peak_bytes.begin(), use.peak_bytes.end());
}

/// A placement's schedule with the memory that it takes.
std::pair<Schedule, MemoryUse> scheduled(const PartitionTask& task, ReadyOrder& judge,
                                         const Placement& placement) {
  const double limit = task.memory_bytes.value_or(std::numeric_limits<double>::infinity());
  std::vector<Schedule> all = schedules_of(judge, task.link, placement);
  std::stable_sort(all.begin(), all.end(),
                   [](const Schedule& a, const Schedule& b) { return a.makespan_us < b.makespan_us; });
  std::pair<Schedule, MemoryUse> best;
  for (Schedule& schedule : all) {
    MemoryUse use = emulate_memory(task.dag, task.link, task.parts, placement, schedule);
    const double fullest = fullest_part(use);
    if (best.first.start_us.empty() || fullest < fullest_part(best.second))
      best = {std::move(schedule), std::move(use)};
    if (fullest <= limit) break;
  }
  return best;
}

class MemoryPhase {
 public:
  MemoryPhase(const PartitionTask& task, ReadyOrder& judge)
      : task_(task), dag_(task.dag), judge_(judge), limit_(*task.memory_bytes) {}

  Placement only_move(Placement placement) { return move_until_it_fits(std::move(placement)).placement; }

  Placement run(Placement placement) {
    const Trial start{placement, fullest(placement)};
    if (start.fullest_bytes <= limit_) return placement;
    std::vector<Trial> trials{move_until_it_fits(placement), cut_by_memory()};
    if (trials.back().fullest_bytes > limit_) trials.push_back(move_until_it_fits(trials.back().placement));
    const Trial* emptiest = &start;
    double shortest_us = std::numeric_limits<double>::infinity();
    Placement shortest;
    const auto offer = [&](Placement placement_that_fits) {
      const double makespan = scheduled(task_, judge_, placement_that_fits).first.makespan_us;
      if (makespan < shortest_us) shortest_us = makespan, shortest = std::move(placement_that_fits);
    };
    for (const Trial& trial : trials) {
      if (trial.fullest_bytes > limit_) {
        if (trial.fullest_bytes < emptiest->fullest_bytes) emptiest = &trial;
        continue;
      }
      offer(trial.placement);
      if (task_.refine)
        offer(refine(judge_, trial.placement, [&](const Placement& candidate) { return fits(candidate); }));
    }
    return shortest.empty() ? emptiest->placement : shortest;
  }

 private:
  /// Of either way to make a placement fit: fewer on graphs whose emulation takes seconds.
  int rounds() const {
    const double size = static_cast<double>(dag_.size()) + static_cast<double>(dag_.edge_count());
    return static_cast<int>(std::clamp(4e6 / size, 4.0, 40.0));
  }
  MemoryUse emulate(const Placement& placement) const { return scheduled(task_, judge_, placement).second; }
  double fullest(const Placement& placement) const { return fullest_part(emulate(placement)); }
  /// Whether fullest() is within the limit, without more schedules than it takes to see that.
  bool fits(const Placement& placement) const {
    ScheduleWays ways(judge_, task_.link, placement);
    for (int way = 0; way < ScheduleWays::count; ++way)
      if (fullest_part(emulate_memory(dag_, task_.link, task_.parts, placement, ways.schedule(way))) <=
          limit_)
        return true;
    return false;
  }

  /// Units that leave a part together, and what that is good for.
  struct Move {
    std::vector<NodeId> units;
    double freed_bytes, cost_us;
  };

  /// What messages cost more when `units` go to `to`: the change over the edges that they have.
  double added_messages_us(const Placement& placement, const std::vector<NodeId>& units, Part to) {
    for (const NodeId unit : units) leaving_[unit] = true;
    double cost = 0;
    const auto crossing = [&](Part from, NodeId other) {
      return (leaving_[dag_.unit(other)] ? to : placement[other]) != from ? 1.0 : 0.0;
    };
    for (const NodeId unit : units) {
      for (const NodeId v : dag_.members(unit)) {
        for (const NodeId w : dag_.children(v))
          cost += judge_.message_us()[v] * (crossing(to, w) - (placement[w] != placement[v] ? 1 : 0));
        for (const NodeId u : dag_.parents(v))
          if (!leaving_[dag_.unit(u)])
            cost += judge_.message_us()[u] * (crossing(to, u) - (placement[u] != placement[v] ? 1 : 0));
      }
    }
    for (const NodeId unit : units) leaving_[unit] = false;
    return cost;
  }

  /// For every output that `part` holds at its peak, its readers that are still to come (with it, where it is
  /// only just being made); for every variable, its unit with its readers on the part.
  std::vector<Move> moves_from(Part part, Part to, const Placement& placement, const MemoryUse& use) {
    std::vector<Move> moves;
    const auto add = [&](Move move) {
      std::sort(move.units.begin(), move.units.end());
      move.units.erase(std::unique(move.units.begin(), move.units.end()), move.units.end());
      for (const NodeId unit : move.units)
        for (const NodeId v : dag_.members(unit)) move.freed_bytes += dag_.memory_bytes(v);
      if (move.units.empty() || move.freed_bytes <= 0) return;
      move.cost_us = added_messages_us(placement, move.units, to);
      moves.push_back(std::move(move));
    };
    const std::uint32_t peak = use.peak_position[part];
    for (const HeldOutput& held : use.outputs) {
      if (held.part != part || held.first > peak || held.last < peak) continue;
      Move move{{}, held.bytes, 0};
      for (const NodeId w : dag_.children(held.node))
        if (placement[w] == part && use.position[w] >= peak) move.units.push_back(dag_.unit(w));
      if (placement[held.node] == part && use.position[held.node] == peak)
        move.units.push_back(dag_.unit(held.node));
      add(std::move(move));
    }
    for (const NodeId v : use.sequence[part]) {
      if (dag_.memory_bytes(v) == 0) continue;
      Move move{{dag_.unit(v)}, 0, 0};
      add(move);
      for (const NodeId w : dag_.children(v))
        if (placement[w] == part) move.units.push_back(dag_.unit(w));
      add(std::move(move));
    }
    // Cheapest for what it frees first; what saves messages comes before all else.
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
      return a.cost_us / a.freed_bytes < b.cost_us / b.freed_bytes;
    });
    return moves;
  }

  Trial move_until_it_fits(Placement placement) {
    constexpr int patience = 6;
    leaving_.assign(dag_.unit_count(), false);
    Trial best{placement, std::numeric_limits<double>::infinity()};
    for (int round = 0, worse = 0; round < rounds() && worse < patience; ++round) {
      const MemoryUse use = emulate(placement);
      const auto full = std::max_element(use.peak_bytes.begin(), use.peak_bytes.end());
      worse = *full < best.fullest_bytes ? 0 : worse + 1;
      if (*full < best.fullest_bytes) best = {placement, *full};
      if (*full <= limit_) break;
      relieve(static_cast<Part>(full - use.peak_bytes.begin()), placement, use);
    }
    return best;
  }

  void relieve(Part part, Placement& placement, const MemoryUse& use) {
    std::vector<double> expected = use.peak_bytes;  // after the moves so far
    const auto emptiest = [&] {
      return static_cast<Part>(std::min_element(expected.begin(), expected.end()) - expected.begin());
    };
    std::vector<bool> touched(dag_.unit_count());
    for (const Move& move : moves_from(part, emptiest(), placement, use)) {
      const Part to = emptiest();
      if (expected[part] <= limit_ || to == part) break;
      if (expected[to] + move.freed_bytes > std::max(limit_, expected[part] - move.freed_bytes)) continue;
      if (std::any_of(move.units.begin(), move.units.end(), [&](NodeId u) { return touched[u]; })) continue;
      for (const NodeId unit : move.units) {
        touched[unit] = true;
        for (const NodeId v : dag_.members(unit)) placement[v] = to;
      }
      expected[part] -= move.freed_bytes;
      expected[to] += move.freed_bytes;
    }
  }

  /// Of each node the place in the order of what its inputs' oldest inputs are; of one without inputs that of
  /// its first reader. So a backward operation stands where its forward one does, and a sum of gradients
  /// where the backward operations do that it adds up.
  std::vector<std::uint32_t> oldest_inputs() const {
    std::vector<std::uint32_t> place(dag_.size());
    for (std::uint32_t i = 0; i < dag_.size(); ++i) place[dag_.order()[i]] = i;
    std::vector<std::uint32_t> oldest = place;
    for (int steps = 0; steps < 2; ++steps) {
      std::vector<std::uint32_t> before = oldest;
      for (NodeId v = 0; v < dag_.size(); ++v)
        for (const NodeId u : dag_.parents(v))
          if (!dag_.parents(u).empty()) before[v] = std::min(before[v], oldest[u]);
      oldest = std::move(before);
    }
    for (NodeId v = 0; v < dag_.size(); ++v) {
      if (!dag_.parents(v).empty() || dag_.children(v).empty()) continue;
      oldest[v] = dag_.size();
      for (const NodeId w : dag_.children(v)) oldest[v] = std::min(oldest[v], oldest[w]);
    }
    return oldest;
  }

  /// Units in the order of their first members' oldest inputs, so that a backward operation stands where its
  /// forward one does; cut into blocks whose sizes follow their parts' peaks until these are level.
  Trial cut_by_memory() const {
    const std::vector<std::uint32_t> oldest = oldest_inputs();
    std::vector<NodeId> units(dag_.unit_count());
    std::iota(units.begin(), units.end(), 0);
    const auto key = [&](NodeId unit) {
      std::uint32_t first = dag_.size();
      for (const NodeId v : dag_.members(unit)) first = std::min(first, oldest[v]);
      return first;
    };
    std::vector<std::uint32_t> keys(dag_.unit_count());
    for (const NodeId unit : units) keys[unit] = key(unit);
    std::stable_sort(units.begin(), units.end(), [&](NodeId a, NodeId b) { return keys[a] < keys[b]; });
    std::vector<double> bytes(dag_.unit_count());
    for (const NodeId unit : units)
      for (const NodeId v : dag_.members(unit)) bytes[unit] += dag_.memory_bytes(v) + dag_.output_bytes(v);

    std::vector<double> share(task_.parts, 1);
    Trial best{{}, std::numeric_limits<double>::infinity()};
    Placement placement(dag_.size());
    for (int round = 0; round < rounds() && best.fullest_bytes > limit_; ++round) {
      const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
      const double shares = std::accumulate(share.begin(), share.end(), 0.0);
      Part part = 0;
      double before = 0, end = all * share[0] / shares;
      for (const NodeId unit : units) {
        while (part + 1 < task_.parts && before + bytes[unit] / 2 > end) end += all * share[++part] / shares;
        before += bytes[unit];
        for (const NodeId v : dag_.members(unit)) placement[v] = part;
      }
      const MemoryUse use = emulate(placement);
      const double full = fullest_part(use);
      if (full < best.fullest_bytes) best = {placement, full};
      const double mean = std::accumulate(use.peak_bytes.begin(), use.peak_bytes.end(), 0.0) / task_.parts;
      for (Part k = 0; k < task_.parts; ++k)
        if (use.peak_bytes[k] > 0) share[k] *= std::clamp(mean / use.peak_bytes[k], 0.7, 1.4);
    }
    return best;
  }

  const PartitionTask& task_;
  const Dag& dag_;
  ReadyOrder& judge_;
  const double limit_;
  std::vector<bool> leaving_;  ///< by unit; scratch of added_messages_us
};

}  // namespace

Placement fit_memory(const PartitionTask& task, ReadyOrder& judge, Placement placement) {
  return task.memory_bytes ? MemoryPhase(task, judge).run(std::move(placement)) : placement;
}

Placement move_until_it_fits(const PartitionTask& task, ReadyOrder& judge, Placement placement) {
  return task.memory_bytes ? MemoryPhase(task, judge).only_move(std::move(placement)) : placement;
}

Schedule schedule_within_memory(const PartitionTask& task, ReadyOrder& judge, const Placement& placement) {
  return task.memory_bytes ? scheduled(task, judge, placement).first
                           : best_schedule(judge, task.link, placement);
}

}  // namespace convoy::partition
