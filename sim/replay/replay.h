// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "topologies/cost_model.h"
#include "topologies/machine.h"

namespace convoy {

struct ReplayOptions {
  bool fold = true;          ///< simulate one of each class of equal devices and flows; exact, so off is for tests only
  bool record_spans = false; ///< keep what every device did when, for the trace
};

/// A stretch of time in which an endpoint ran an operation or took part in a communication.
struct Span {
  EndpointId endpoint;
  std::uint32_t role;
  int stream;                ///< Task::no_stream for tasks without one
  std::string name;
  double start_s, end_s;
};

struct MemoryPoint {
  double time_s;
  std::array<double, memory_class_count> bytes;
};

/// What one endpoint did in the step.
struct EndpointUsage {
  double compute_s = 0;          ///< computing
  double exposed_comm_s = 0;     ///< not computing while a message to or from it, or its collective's overhead, was under way
  double end_s = 0;              ///< end of its last task
  double sent_bytes = 0, received_bytes = 0;
  double peak_memory_bytes = 0;
  std::array<double, memory_class_count> memory_at_peak{};
};

struct LinkUsage {
  double bytes = 0;
  double busy_s = 0;             ///< at least one message under way over it
};

struct ReplayResult {
  double step_time_s = 0;
  std::vector<EndpointUsage> endpoints;      ///< devices, then hosts
  std::vector<LinkUsage> links;
  std::vector<double> port_busy_s;           ///< by Link::port: either direction busy
  double comm_bytes = 0;                     ///< payload, each message once however many hops; nothing within a place
  std::vector<Span> spans;                   ///< ordered by start, where recorded
  std::size_t simulated_endpoints = 0, simulated_flows = 0;  ///< after folding
};

/// Replays one step of `plan` on `machine` with SimGrid. At most one replay can run in a process at a time; several
/// may follow one another. Exact alpha-beta links with max-min sharing.
/// @throws std::runtime_error naming blocked tasks, when the plan cannot finish.
ReplayResult replay(const Plan& plan, const Machine& machine, const CostModel& cost, const ReplayOptions& options);

/// Memory of one endpoint over the step, for drawings.
std::vector<MemoryPoint> memory_timeline(const ReplayResult& result, const Plan& plan, EndpointId endpoint);

}  // namespace convoy
