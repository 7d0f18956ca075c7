// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/plan.h"
#include "topologies/machine.h"

/// Machines and plans put together by hand, without YAML or strategies.
namespace convoy::hand {

/// Routes as a table; an endpoint pair that is not in it is in one place.
class TableRouter : public Router {
 public:
  std::map<std::pair<EndpointId, EndpointId>, Route> table;
  void route(EndpointId from, EndpointId to, Route& result) const override {
    const auto it = table.find({from, to});
    result = it == table.end() ? Route{} : it->second;
  }
};

/// `count` devices d0, d1, ... of 1 TFLOPS, each in a host h0, h1, ... of its own; no links.
inline Machine devices(std::uint32_t count) {
  Machine machine;
  machine.name = "hand";
  machine.device_types.resize(1);
  machine.device_types[0].name = "device";
  machine.device_types[0].peak_flops = {{Precision::fp32, 1e12}};
  machine.device_types[0].memory_bandwidth_Bps = 1e12;
  machine.host_types.resize(1);
  for (std::uint32_t i = 0; i < count; ++i) {
    machine.hosts.push_back({fmt::format("h{}", i), 0, i, 1});
    machine.devices.push_back({fmt::format("d{}", i), 0, i, 1.0});
  }
  return machine;
}

/// The same, each with an up link (2i) and a down link (2i + 1) to one switch. A host's memory is in its
/// device's place.
inline Machine star(std::uint32_t count, double bandwidth_Bps, double latency_s) {
  Machine machine = devices(count);
  machine.port_count = count;
  const auto router = std::make_shared<TableRouter>();
  for (std::uint32_t i = 0; i < count; ++i) {
    machine.links.push_back({machine.devices[i].name + ".nic.up", bandwidth_Bps, latency_s, i});
    machine.links.push_back({machine.devices[i].name + ".nic.down", bandwidth_Bps, 0, i});
    for (std::uint32_t j = 0; j < count; ++j)
      if (i != j)
        for (const EndpointId from : {i, count + i})
          for (const EndpointId to : {j, count + j})
            router->table[{from, to}] = {{2 * i, 2 * j + 1}, latency_s};
  }
  machine.router = router;
  return machine;
}

/// An operation of so many milliseconds on a device of speed 1.
inline PlanOp op(std::string name, double ms, std::vector<MemoryDelta> allocates = {},
                 std::vector<MemoryDelta> frees = {}) {
  Work work;
  work.flops_per_image = ms * 1e9;
  return {std::move(name), work, 1, std::move(allocates), std::move(frees)};
}

inline Task compute(std::string name, double ms, std::vector<TaskId> after = {}) {
  Task task;
  task.ops = {op(name, ms)};
  task.name = std::move(name);
  task.after = std::move(after);
  return task;
}

inline Task host_compute(std::string name, double seconds, std::vector<TaskId> after = {}) {
  Task task;
  task.name = std::move(name);
  task.seconds = seconds;
  task.after = std::move(after);
  return task;
}

inline Task message(Task::Kind kind, std::string name, CommId comm, std::vector<TaskId> after = {},
                    int stream = Task::no_stream) {
  Task task;
  task.name = std::move(name);
  task.kind = kind;
  task.stream = stream;
  task.after = std::move(after);
  task.comm = comm;
  return task;
}

/// A role of members that have a compute and a communication stream.
inline Role role(std::string name, std::vector<EndpointId> members, std::vector<Task> program) {
  return {std::move(name), std::move(members), {"compute", "communication"}, std::move(program), {}};
}

/// One message from each member to the next.
inline Round ring_round(std::uint32_t members, double fraction, std::uint32_t repeat) {
  Round round{{}, {fraction}, repeat};
  for (std::uint32_t i = 0; i < members; ++i) round.pairs.emplace_back(i, (i + 1) % members);
  return round;
}

}  // namespace convoy::hand
