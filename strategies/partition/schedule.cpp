// SPDX-License-Identifier: MIT
#include "strategies/partition/schedule.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "strategies/partition/gaps.h"
#include "strategies/partition/largest_of_parts.h"
#include "strategies/partition/longest_first.h"

namespace convoy::inline partition {
namespace {

/// Gaps that insertion looks at before it appends: keeps graphs with as many gaps as nodes from taking
/// minutes.
constexpr std::size_t most_gaps = 100;

}  // namespace

ReadyOrder::ReadyOrder(const Dag& dag, const PartLink& link, Part parts)
    : dag_(dag), parts_(parts), message_(message_costs(dag, link)) {
  const std::vector<double> level = bottom_levels(dag);
  std::vector<NodeId> by_id(dag.size());
  std::iota(by_id.begin(), by_id.end(), 0);
  const std::vector<NodeId> by_rank = longest_first(by_id, [&](NodeId v) { return level[v]; });
  costs_.resize(dag.size());
  for (NodeId r = 0; r < dag.size(); ++r) {
    const NodeId v = by_rank[r];
    costs_[v] = {dag.time_us(v), message_[v], level[v] - dag.time_us(v), r};
  }
  state_.resize(dag.size());
  start_.resize(dag.size());
  finish_.resize(dag.size());
}

double ReadyOrder::makespan_us(const Placement& placement, double limit_us) {
  if (placement == scheduled_)
    return makespan_us_ < limit_us ? makespan_us_ : std::numeric_limits<double>::infinity();
  scheduled_.clear();
  free_.assign(parts_, 0);
  sequence_.clear();
  heap_.clear();
  for (NodeId v = 0; v < dag_.size(); ++v) {
    state_[v] = {0, static_cast<std::uint32_t>(dag_.parents(v).size()), placement[v]};
    if (state_[v].missing == 0) heap_.push({0, costs_[v].rank, v});
  }
  double makespan = 0;
  while (!heap_.empty()) {
    const NodeId v = heap_.pop().item;
    const Part part = state_[v].part;
    const Costs& costs = costs_[v];
    start_[v] = std::max(free_[part], state_[v].ready);
    const double finish = finish_[v] = free_[part] = start_[v] + costs.time;
    sequence_.push_back(v);
    makespan = std::max(makespan, finish);
    if (finish + costs.tail >= limit_us) return std::numeric_limits<double>::infinity();
    for (const NodeId w : dag_.children(v)) {
      State& state = state_[w];
      state.ready = std::max(state.ready, state.part == part ? finish : finish + costs.message);
      if (--state.missing == 0) heap_.push({state.ready, costs_[w].rank, w});
    }
  }
  scheduled_ = placement;
  return makespan_us_ = makespan;
}

Schedule ReadyOrder::schedule(const Placement& placement) {
  const double makespan = makespan_us(placement);
  return {start_, finish_, makespan};
}

InputsReady find_ready(const Dag& dag, NodeId node, const Placement& placement,
                       const std::vector<double>& finish_us, const std::vector<double>& message_us) {
  LargestOfParts arrival_us{0, 0};
  for (const NodeId u : dag.parents(node)) arrival_us.add(placement[u], finish_us[u] + message_us[u]);
  InputsReady ready{arrival_us.largest, arrival_us.of_others, arrival_us.part};
  for (const NodeId u : dag.parents(node))
    if (placement[u] == ready.sender) ready.at_sender_us = std::max(ready.at_sender_us, finish_us[u]);
  return ready;
}

Schedule schedule_by_priority(const Dag& dag, const PartLink& link, Part parts, const Placement& placement,
                              const std::vector<double>& priority) {
  struct Waiting {  // of a part, for its next turn: highest priority first
    double priority;
    NodeId node;
    bool operator<(const Waiting& o) const {
      return priority < o.priority || (priority == o.priority && node > o.node);
    }
  };
  struct Event {  // a node's inputs are there, or (node == dag.size()) it is the part's turn
    double time;
    NodeId node;
    Part part;
    bool operator<(const Event& o) const {  // earliest first; nodes before parts, so that parts see them all
      return time > o.time || (time == o.time && (node > o.node || (node == o.node && part > o.part)));
    }
  };
  Schedule schedule{std::vector<double>(dag.size()), std::vector<double>(dag.size()), 0};
  struct State {  // of a node, side by side: they are needed together
    double ready;
    std::uint32_t missing;  // inputs
    Part part;
  };
  std::vector<double> free(parts);
  std::vector<State> state(dag.size());
  std::vector<std::priority_queue<Waiting>> waiting(
      parts);  // where any waits, one turn of the part is to come
  std::priority_queue<Event> events;
  for (NodeId v = 0; v < dag.size(); ++v) {
    state[v] = {0, static_cast<std::uint32_t>(dag.parents(v).size()), placement[v]};
    if (state[v].missing == 0) events.push({0, v, placement[v]});
  }
  while (!events.empty()) {
    const Event event = events.top();
    events.pop();
    if (event.node != dag.size()) {
      if (waiting[event.part].empty())
        events.push({std::max(event.time, free[event.part]), dag.size(), event.part});
      waiting[event.part].push({priority[event.node], event.node});
      continue;
    }
    const NodeId v = waiting[event.part].top().node;
    waiting[event.part].pop();
    schedule.start_us[v] = event.time;
    const double finish = schedule.finish_us[v] = free[event.part] = event.time + dag.time_us(v);
    schedule.makespan_us = std::max(schedule.makespan_us, finish);
    const double arrival = finish + link.cost_us(dag.output_bytes(v));
    for (const NodeId w : dag.children(v)) {
      State& reader = state[w];
      reader.ready = std::max(reader.ready, reader.part == event.part ? finish : arrival);
      if (--reader.missing == 0) events.push({reader.ready, w, reader.part});
    }
    if (!waiting[event.part].empty()) events.push({finish, dag.size(), event.part});
  }
  return schedule;
}

Schedule schedule_by_insertion(const Dag& dag, const PartLink& link, Part parts, const Placement& placement,
                               const std::vector<NodeId>& sequence) {
  Schedule schedule{std::vector<double>(dag.size()), std::vector<double>(dag.size()), 0};
  std::vector<Gaps> gaps(parts);
  for (const NodeId v : sequence) {
    double ready = 0;
    for (const NodeId u : dag.parents(v))
      ready = std::max(ready, placement[u] == placement[v]
                                  ? schedule.finish_us[u]
                                  : schedule.finish_us[u] + link.cost_us(dag.output_bytes(u)));
    const double start = gaps[placement[v]].earliest(ready, dag.time_us(v), most_gaps);
    gaps[placement[v]].take(start, start + dag.time_us(v));
    schedule.start_us[v] = start;
    schedule.finish_us[v] = start + dag.time_us(v);
    schedule.makespan_us = std::max(schedule.makespan_us, schedule.finish_us[v]);
  }
  return schedule;
}

std::vector<double> placed_bottom_levels(const Dag& dag, const std::vector<double>& message_us,
                                         const Placement& placement) {
  std::vector<double> level(dag.size());
  for (auto v = dag.order().rbegin(); v != dag.order().rend(); ++v) {
    double longest = 0;
    for (const NodeId w : dag.children(*v))
      longest = std::max(longest, placement[w] == placement[*v] ? level[w] : level[w] + message_us[*v]);
    level[*v] = dag.time_us(*v) + longest;
  }
  return level;
}

double busiest_us(const Dag& dag, Part parts, const Placement& placement) {
  std::vector<double> work_us(parts);
  for (NodeId v = 0; v < dag.size(); ++v) work_us[placement[v]] += dag.time_us(v);
  return *std::max_element(work_us.begin(), work_us.end());
}

ScheduleWays::ScheduleWays(ReadyOrder& ready, const PartLink& link, const Placement& placement)
    : ready_(ready), link_(link), placement_(placement) {}

const std::vector<double>& ScheduleWays::level() {
  if (level_.empty()) level_ = placed_bottom_levels(ready_.dag(), ready_.message_us(), placement_);
  return level_;
}

Schedule ScheduleWays::schedule(int way) {
  const Dag& dag = ready_.dag();
  switch (way) {
    case 0:
      return ready_.schedule(placement_);
    case 1:
      return schedule_by_priority(dag, link_, ready_.parts(), placement_, level());
    case 2: {
      const auto by_level = longest_first(dag.order(), [&](NodeId v) { return level()[v]; });
      return schedule_by_insertion(dag, link_, ready_.parts(), placement_, by_level);
    }
    default: {
      std::vector<double> earliness(dag.size());
      for (NodeId i = 0; i < dag.size(); ++i) earliness[dag.order()[i]] = -static_cast<double>(i);
      return schedule_by_priority(dag, link_, ready_.parts(), placement_, earliness);
    }
  }
}

std::vector<Schedule> schedules_of(ReadyOrder& ready, const PartLink& link, const Placement& placement) {
  ScheduleWays ways(ready, link, placement);
  std::vector<Schedule> schedules;
  for (int way = 0; way < ScheduleWays::count; ++way) schedules.push_back(ways.schedule(way));
  return schedules;
}

Schedule best_schedule(ReadyOrder& ready, const PartLink& link, const Placement& placement) {
  const double least_us = busiest_us(ready.dag(), ready.parts(), placement);
  ScheduleWays ways(ready, link, placement);
  Schedule best = ways.schedule(0);
  for (int way = 1; way < ScheduleWays::count && best.makespan_us > least_us; ++way) {
    Schedule other = ways.schedule(way);
    if (other.makespan_us < best.makespan_us) best = std::move(other);
  }
  return best;
}

}  // namespace convoy::partition
