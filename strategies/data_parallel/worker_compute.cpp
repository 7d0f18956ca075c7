// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/worker_compute.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/lowering/liveness.h"
#include "sim/lowering/stages.h"

namespace convoy::inline strategies {

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

std::vector<TaskId> add_worker_compute(ComputeTasks& tasks, const TrainingGraph& graph, double images,
                                       std::int64_t micro_batches, const std::vector<PushMessage>& messages,
                                       bool overlap, const std::vector<TaskId>& pulled,
                                       const std::function<void(std::size_t)>& prepare) {
  Stage stage = whole_network(graph);
  const std::vector<StageOp*> program = in_order<StageOp>({&stage.forward, &stage.backward});
  std::vector<std::vector<TaskId>> waits(graph.operations.size());
  std::vector<std::vector<std::size_t>> completes(graph.operations.size());
  for (std::size_t m = 0; m < messages.size(); ++m) {
    if (!pulled.empty()) waits[messages[m].first_use].push_back(pulled[m]);
    completes[overlap ? messages[m].ready : program.back()->op].push_back(m);
  }
  std::vector<TaskId> ready(messages.size());
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    const std::string suffix = micro_batches > 1 ? fmt::format(" #{}", i) : "";
    for (const StageOp* op : program) {
      if (i == 0)
        for (const TaskId task : waits[op->op]) tasks.wait_for(task);
      tasks.add(plan_op(*op, images, suffix));
      if (i + 1 < micro_batches) continue;
      for (const std::size_t m : completes[op->op])
        if (prepare) prepare(m);
      for (const std::size_t m : completes[op->op]) ready[m] = tasks.close();
    }
  }
  tasks.close();
  return ready;
}

}  // namespace convoy::strategies
