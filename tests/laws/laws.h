// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/training_graph.h"
#include "sim/costs/cost_model.h"
#include "sim/plan/plan.h"
#include "sim/plan/strategy_report.h"
#include "sim/replay/replay.h"
#include "topologies/machine.h"

namespace convoy::lab {

/// Equal, or not greater, but for rounding.
bool same(double a, double b);
bool no_more(double a, double b);

struct Traffic {
  std::vector<double> sent, received;  ///< by endpoint
  std::vector<double> links;
  double total = 0;
};
/// What the plan sends, message by message, by the routes of the machine.
Traffic traffic_of(const Plan& plan, const Machine& machine);

/// A plan, what it was made from and what its replay measured.
struct Trial {
  const TrainingGraph& graph;
  const Machine& machine;
  const CostModel& cost;
  const Plan& plan;
  const StrategyReport& report;
  ReplayResult result;
};

// Laws that hold for every plan; each checks, and says where not.

/// Bytes of every endpoint and link are those of the plan's messages, and links carry no more than they can.
/// Clients of a service send at their own pace: of those only the sum is known.
void check_bytes(const Trial& trial);
/// Compute and exposed communication fit into each endpoint's time, and the last one ends the step.
void check_time(const Trial& trial);
/// Each device computes what its program says, one operation at a time.
void check_devices(const Trial& trial);
/// A device has one role at most, whose members are all of one type, and which holds what that type's system
/// reserves.
void check_roles(const Trial& trial);
/// Going through each device's operations in order, memory reaches the reported peak and no more, and is at
/// the end what it was at the beginning.
void check_memory(const Trial& trial);
/// The step is no shorter than the longest chain of operations and messages, messages taking no time, nor
/// than all work shared evenly among the devices, nor than its lower bound (sim/replay/lower_bound.h).
void check_bounds(const Trial& trial);

/// How often a strategy does what the graph says.
struct OperationCounts {
  double forward = 1;          ///< of every sample; 2 where recomputation does it again
  double updates = 1;          ///< of every parameter
  const char* sums = nullptr;  ///< ends the names of additions that only the distribution makes necessary
  const char* of_messages = nullptr;  ///< begins the names of what is done for messages
};
/// Every operation of the graph is done for every sample as often as it is said, or twice where the graph
/// runs it again, on one device or in shares that add up to it, and nothing else is computed.
void check_operations(const Trial& trial, const OperationCounts& counts);

}  // namespace convoy::lab
