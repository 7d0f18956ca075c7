// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <vector>

#include "strategies/partition/dag.h"
#include "strategies/partition/ready_heap.h"

namespace convoy::inline partition {

/// When each node of a placed graph runs.
struct Schedule {
  std::vector<double> start_us, finish_us;
  double makespan_us = 0;
};

/// Schedules placements of one graph in the order of readiness: on each part operations run in the order in
/// which their inputs are there (ties: longer way to the end first, then smaller id). A node's output is on
/// every other part `link.cost_us` after its end; links carry any number of messages at a time, and messages
/// take no time of a part. This is what a placement is judged by.
class ReadyOrder {
 public:
  ReadyOrder(const Dag& dag, const PartLink& link, Part parts);

  /// A placement that is asked for again at once is not scheduled again.
  /// @param limit_us gives up (infinity) as soon as the makespan cannot stay below it
  double makespan_us(const Placement& placement, double limit_us = std::numeric_limits<double>::infinity());
  Schedule schedule(const Placement& placement);

  // Of the last call:
  const std::vector<double>& start_us() const { return start_; }
  const std::vector<double>& finish_us() const { return finish_; }
  double ready_us(NodeId v) const { return state_[v].ready; }
  const std::vector<NodeId>& sequence() const { return sequence_; }  ///< as scheduled

  const Dag& dag() const { return dag_; }
  Part parts() const { return parts_; }
  const std::vector<double>& message_us() const { return message_; }  ///< of each node's output
  /// Longest way that begins with a node, without messages.
  double way_us(NodeId v) const { return costs_[v].time + costs_[v].tail; }
  /// Position of a node when longer ways come first, then smaller ids.
  NodeId rank(NodeId v) const { return costs_[v].rank; }

 private:
  struct Costs {  // of a node, side by side: they are needed together
    double time, message, tail;
    NodeId rank;
  };
  struct State {
    double ready;
    std::uint32_t missing;  ///< inputs
    Part part;
  };
  const Dag& dag_;
  Part parts_;
  std::vector<double> message_, start_, finish_, free_;
  std::vector<NodeId> sequence_;
  std::vector<Costs> costs_;
  std::vector<State> state_;
  ReadyHeap heap_;          ///< nodes whose inputs are there
  Placement scheduled_;     ///< that of the last call, if it did not give up
  double makespan_us_ = 0;  ///< of scheduled_
};

/// When a node's inputs are there, by the part that it would be placed on: the latest message says it for all
/// parts but its sender's, which has the ends of its own nodes and the latest message from any other part.
struct InputsReady {
  double elsewhere_us = 0;
  double at_sender_us = 0;  ///< never later than elsewhere
  Part sender = no_part;    ///< none where all inputs are there at 0
  double on_us(Part part) const { return part == sender ? at_sender_us : elsewhere_us; }
};
/// @param finish_us, message_us of all nodes
InputsReady find_ready(const Dag& dag, NodeId node, const Placement& placement,
                       const std::vector<double>& finish_us, const std::vector<double>& message_us);

/// Schedules a placement without idling: a part that is free runs, of the nodes whose inputs are there, the
/// one with the highest priority (ties: smaller id).
Schedule schedule_by_priority(const Dag& dag, const PartLink& link, Part parts, const Placement& placement,
                              const std::vector<double>& priority);

/// Schedules a placement by insertion: nodes in the order of `sequence` (topological), each in the earliest
/// gap of its part that is long enough, of the next hundred gaps, else after the last operation.
Schedule schedule_by_insertion(const Dag& dag, const PartLink& link, Part parts, const Placement& placement,
                               const std::vector<NodeId>& sequence);

/// Bottom levels where only edges between parts cost a message.
std::vector<double> placed_bottom_levels(const Dag& dag, const std::vector<double>& message_us,
                                         const Placement& placement);

/// The ways in which a partitioner may order a placement's operations: by readiness, by priority (longest way
/// to the end first), by insertion in that order, and by priority in the graph's own order, which makes
/// nothing before it is needed.
class ScheduleWays {
 public:
  /// @param ready of the same graph and link; its last call becomes that of a schedule by readiness
  ScheduleWays(ReadyOrder& ready, const PartLink& link, const Placement& placement);
  static constexpr int count = 4;
  /// @param way 0 to count - 1
  Schedule schedule(int way);

 private:
  const std::vector<double>& level();

  ReadyOrder& ready_;
  PartLink link_;
  const Placement& placement_;
  std::vector<double> level_;  ///< placed_bottom_levels, once they are asked for
};

/// A placement scheduled in all of these ways.
std::vector<Schedule> schedules_of(ReadyOrder& ready, const PartLink& link, const Placement& placement);

/// Work of the busiest part: no schedule of the placement is shorter.
double busiest_us(const Dag& dag, Part parts, const Placement& placement);

/// The first of them that is shortest: a partitioner's own order on each part. Those after one that is as short
/// as the work of the busiest part are not made.
Schedule best_schedule(ReadyOrder& ready, const PartLink& link, const Placement& placement);

}  // namespace convoy::partition
