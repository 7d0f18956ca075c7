// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/service_plan.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline strategies {
namespace {

constexpr std::uint32_t groups_at_start = 8;   ///< of ssp
constexpr std::uint32_t most_phases = 64;      ///< of async
constexpr std::uint32_t most_sequences = 256;  ///< of backup workers
/// Of async: compute times are drawn evenly from 50 to 150 %, so that who meets whom on the network changes
/// from step to step.
constexpr double compute_spread = 0.5;

/// In which a device, whose host issues them, comes through a step's operations, without jitter.
double compute_time_s(const Role& role, const Device& device, const StrategyInput& input) {
  IssueQueue queue(input.cost.begin_s(input.machine.device_types[device.type]));
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops)
      queue.run(input.cost.queued_time(op.work, op.images, input.machine, device));
  return queue.end_s();
}

/// In [0, 1), different for each worker: the Weyl sequence of the golden ratio from 0.5 on.
double random_phase(std::uint32_t worker) {
  const double turns = 0.5 + worker * 0.6180339887498949;
  return turns - std::floor(turns);
}

/// Of a worker's micro-batch.
double images_of(const Role& role) {
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops) return op.images;
  return 0;
}

}  // namespace

void add_service(const ServerOptions& options, const StrategyInput& input,
                 const std::vector<Service::Exchange>& exchanges, Plan& plan) {
  Service service;
  service.exchanges = exchanges;
  const bool sync = options.mode == ServerMode::sync;
  std::vector<double> step_s;
  for (Role& role : plan.roles) {
    if (role.members[0] >= input.machine.devices.size()) continue;
    for (const EndpointId device : role.members) {
      const double images = static_cast<double>(options.micro_batches) * images_of(role);
      service.clients.push_back({device, images, 0, 0});
      step_s.push_back(compute_time_s(role, input.machine.devices[device], input));
    }
  }
  const auto workers = static_cast<std::uint32_t>(service.clients.size());
  if (sync) {
    service.quorum = workers - options.backup_workers;
    plan.images *= static_cast<double>(service.quorum) / workers;
    service.step_jitter = input.machine.step_jitter;
    for (std::uint32_t w = 0; w < workers && service.step_jitter > 0; ++w)
      service.clients[w].sequence = w % most_sequences;
  } else if (options.mode == ServerMode::async) {
    if (workers > 1) service.compute_spread = compute_spread;
    service.measured_steps = 4;
    for (std::uint32_t w = 0; w < workers; ++w)
      service.clients[w].start_s = step_s[w] * random_phase(w % most_phases);
  } else {
    const std::uint32_t groups = std::min(workers, groups_at_start);
    const double slowest_s = *std::max_element(step_s.begin(), step_s.end());
    for (std::uint32_t w = 0; w < workers; ++w) {
      Service::Client& client = service.clients[w];
      client.start_s = step_s[w] * (client.device % groups) / groups;
      if (step_s[w] < slowest_s * (1 - 1e-9)) client.head_start = options.staleness;
    }
    service.max_lead = options.staleness;
  }
  plan.course = std::move(service);
}

}  // namespace convoy::strategies
