// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/worker_compute.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/lowering/worker_program.h"

namespace convoy {

std::uint32_t node_count(const Machine& machine) {
  return static_cast<std::uint32_t>(std::count_if(machine.hosts.begin(), machine.hosts.end(),
                                                  [](const Host& host) { return host.device_count > 0; }));
}

std::vector<EndpointId> server_endpoints(const ServerOptions& options, const Machine& machine) {
  const std::uint32_t nodes = node_count(machine);
  if (!options.dedicated && options.servers > nodes)
    throw InputError(
        options.servers_pos,
        fmt::format("strategy.servers: {} colocated servers need a node each, and there are {}; at most {} "
                    "here, or placement: dedicated",
                    options.servers, nodes, nodes));
  if (options.backup_workers >= machine.devices.size())
    throw InputError(
        options.backup_workers_pos,
        fmt::format("strategy.backup_workers: with {} backup workers of {} no worker is left to wait "
                    "for; at most {} here",
                    options.backup_workers, machine.devices.size(), machine.devices.size() - 1));
  std::vector<EndpointId> servers;
  for (std::uint32_t s = 0; s < options.servers; ++s)
    servers.push_back(machine.host_endpoint(options.dedicated ? nodes + s : s));
  return servers;
}

std::vector<TaskId> add_worker_compute(Role& role, const TrainingGraph& graph, double images,
                                       const std::vector<PushMessage>& messages, bool overlap,
                                       const std::vector<TaskId>& pulled) {
  std::vector<OpId> cuts;
  if (overlap)
    for (const PushMessage& message : messages) cuts.push_back(message.ready);
  if (!pulled.empty())
    for (const PushMessage& message : messages)
      cuts.push_back(message.first_use > 0 ? message.first_use - 1 : message.ready);
  const auto first = static_cast<TaskId>(role.program.size());
  const ForwardBackward compute = add_forward_backward(role, graph, images, 1, cuts);
  const std::size_t waits = overlap ? messages.size() : 0;  // entries of cuts before those of first uses
  for (std::size_t m = 0; m < pulled.size(); ++m) {
    const TaskId user = messages[m].first_use > 0 ? compute.task_of[waits + m] + 1 : first;
    role.program[user].after.push_back(pulled[m]);
  }
  std::vector<TaskId> ready(messages.size(), compute.last);
  if (overlap) std::copy_n(compute.task_of.begin(), messages.size(), ready.begin());
  return ready;
}

}  // namespace convoy
