// SPDX-License-Identifier: MIT
#include "strategies/elastic/reconfigure.h"

#include <algorithm>

#include "sim/collectives/collectives.h"

namespace convoy {
namespace {

// `import tensorflow` (2.1) on a workstation: 4.3 s. github.com/tensorflow/tensorflow, issue 37729.
constexpr double framework_init_s = 4.3;
// tf.Session() on a P100, once kernels are compiled: 1 to 5 s; the middle. Same repository, issue 22043.
constexpr double graph_build_s = 3;
// ncclCommInitRank on V100 with InfiniBand: 16.3 s for 8 communicators of 8 ranks, 130 s for 32 of 32
// (github.com/NVIDIA/nccl, issue 534): 2.04 s and 4.06 s each, and the straight line through them.
constexpr double communicator_s = 1.36, communicator_per_device_s = 0.0844;
// What is left of 12.2 s from a change of workers to the end of rendezvous, with 2 workers (TorchElastic on
// AKS, GPU virtual machines of one device): 12.2 - 4.3 - 3 - (1.36 + 2 0.0844).
constexpr double process_start_s = 3.37;
// What the cable of a SATA 3.0 disk carries: 6 Gbit/s, 10 bits a byte. Favours the restart.
constexpr double storage_Bps = 600e6;

std::optional<double> optional_time(YamlMap& map, std::string_view key) {
  if (!map.find(key)) return std::nullopt;
  return map.quantity(key, Dimension::time);
}

/// One collective of all devices of the machine.
Plan collective_of_all(Pattern pattern, std::string name, double bytes, const Machine& machine) {
  Role role;
  role.name = "worker";
  role.streams = {"compute", "communication"};
  for (EndpointId d = 0; d < machine.devices.size(); ++d) role.members.push_back(d);
  Task task;
  task.name = name;
  task.kind = Task::Kind::collective;
  task.stream = 1;
  role.program.push_back(std::move(task));
  Plan plan;
  plan.patterns.push_back(std::move(pattern));
  plan.communications.push_back(
      {std::move(name), 0, bytes, Fidelity::automatic, machine.collective_overhead_s});
  plan.roles.push_back(std::move(role));
  return plan;
}

}  // namespace

RestartTimes read_restart_times(YamlMap& map) {
  RestartTimes times{};
  times.stop_s = map.quantity_or("stop", Dimension::time, 0);
  times.checkpoint_write_s = optional_time(map, "checkpoint_write");
  times.process_start_s = map.quantity_or("process_start", Dimension::time, process_start_s);
  times.framework_init_s = map.quantity_or("framework_init", Dimension::time, framework_init_s);
  times.graph_build_s = map.quantity_or("graph_build", Dimension::time, graph_build_s);
  times.checkpoint_read_s = optional_time(map, "checkpoint_read");
  times.communicator_s = map.quantity_or("communicator", Dimension::time, communicator_s);
  times.communicator_per_device_s =
      map.quantity_or("communicator_per_device", Dimension::time, communicator_per_device_s);
  times.storage_Bps = map.quantity_or("storage", Dimension::bandwidth, storage_Bps, true);
  return times;
}

double state_bytes(const TrainingGraph& graph) {
  const auto resident = graph.resident_bytes();
  return resident[static_cast<std::size_t>(MemoryClass::weights)] +
         resident[static_cast<std::size_t>(MemoryClass::optimizer)];
}

double state_bytes(const Plan& plan) {
  double most = 0;
  for (const Role& role : plan.roles)
    most = std::max(most, role.resident_bytes[static_cast<std::size_t>(MemoryClass::weights)] +
                              role.resident_bytes[static_cast<std::size_t>(MemoryClass::optimizer)]);
  return most;
}

Reconfiguration restart(const RestartTimes& times, const TrainingGraph& graph, std::uint32_t to) {
  const double storage_s = state_bytes(graph) / times.storage_Bps;
  Reconfiguration change;
  change.pause_s = times.stop_s + times.checkpoint_write_s.value_or(storage_s) + times.process_start_s +
                   times.framework_init_s + times.graph_build_s +
                   times.checkpoint_read_s.value_or(storage_s) + times.communicator(to);
  return change;
}

Reconfiguration overlapped(const RestartTimes& times, double state_bytes, const Machine& machine,
                           std::uint32_t from, std::uint32_t to) {
  Reconfiguration change;
  change.traffic_devices = std::max(from, to);
  if (to > from) {
    change.preparation_s = times.process_start_s + times.framework_init_s + times.graph_build_s;
    change.pause_s = times.communicator(to);
    change.traffic = collective_of_all(broadcast_to_newcomers(machine, from), "broadcast to newcomers",
                                       state_bytes, machine);
  } else {
    constexpr double one_value_bytes = 8;
    std::vector<EndpointId> ranks(from);
    for (EndpointId d = 0; d < from; ++d) ranks[d] = d;
    change.traffic = collective_of_all(tree_all_reduce(ranks), "agree who leaves", one_value_bytes, machine);
  }
  return change;
}

Reconfiguration redistributed(const RestartTimes& times, double state_bytes, const Machine& machine,
                              std::uint32_t from, std::uint32_t to) {
  Reconfiguration change;
  change.traffic_devices = std::max(from, to);
  if (to > from) change.preparation_s = times.process_start_s + times.framework_init_s + times.graph_build_s;
  change.pause_s = times.communicator(to);
  Pattern pattern;
  pattern.groups.emplace_back();
  for (EndpointId d = 0; d < change.traffic_devices; ++d) pattern.groups[0].push_back(d);
  Round round{{}, {1.0}, 1};
  for (std::uint32_t d = 0; d < to; ++d)
    if (const std::uint32_t holder = (d + 1) % from; holder != d) round.pairs.emplace_back(holder, d);
  pattern.rounds.push_back(std::move(round));
  change.traffic = collective_of_all(std::move(pattern), "states to their new devices", state_bytes, machine);
  return change;
}

Pattern broadcast_to_newcomers(const Machine& machine, std::uint32_t holders) {
  const auto devices = static_cast<std::uint32_t>(machine.devices.size());
  Pattern pattern;
  pattern.groups.emplace_back();
  for (EndpointId d = 0; d < devices; ++d) pattern.groups[0].push_back(d);
  std::vector<char> has(devices, 0);
  std::fill(has.begin(), has.begin() + holders, 1);
  for (std::uint32_t left = devices - holders; left > 0;) {
    Round round{{}, {1.0}, 1};
    std::vector<char> got(devices, 0);
    const auto give = [&](std::uint32_t from, bool own_host) {
      for (std::uint32_t to = 0; to < devices; ++to) {
        if (has[to] || got[to] || (own_host && machine.devices[to].host != machine.devices[from].host))
          continue;
        round.pairs.emplace_back(from, to);
        got[to] = 1;
        return true;
      }
      return false;
    };
    std::vector<std::uint32_t> free;
    for (std::uint32_t from = 0; from < devices; ++from)
      if (has[from] && !give(from, true)) free.push_back(from);
    for (const std::uint32_t from : free) give(from, false);
    left -= static_cast<std::uint32_t>(round.pairs.size());
    for (std::uint32_t d = 0; d < devices; ++d) has[d] = static_cast<char>(has[d] | got[d]);
    pattern.rounds.push_back(std::move(round));
  }
  return pattern;
}

}  // namespace convoy
