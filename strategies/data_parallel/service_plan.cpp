// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/service_plan.h"

#include <algorithm>
#include <cmath>

#include "sim/lowering/jitter.h"

namespace convoy {
namespace {

constexpr std::uint32_t groups_at_start = 8;

/// Of a step's operations on a device, without jitter.
double compute_time_s(const Role& role, const Device& device, const StrategyInput& input) {
  double sum_s = 0;
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops)
      sum_s += input.cost.time_s(op.work, op.images, input.machine.device_types[device.type]);
  return sum_s / device.speed;
}

double images_of(const Role& role) {
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops) return op.images;
  return 0;
}

double slowdown(const ServerOptions& options, const StrategyInput& input) {
  const double jitter = input.machine.step_jitter;
  const std::size_t workers = input.machine.devices.size();
  switch (options.mode) {
    case ServerMode::async:
      return 1;
    case ServerMode::ssp:
      return 1 + jitter * expected_maximum(workers) / std::sqrt(options.staleness + 1.0);
    case ServerMode::sync:
      break;
  }
  return 1 + jitter * expected_order_statistic(workers, workers - options.backup_workers);
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
    role.slowdown = slowdown(options, input);
    for (const EndpointId device : role.members) {
      service.clients.push_back({device, images_of(role), 0, 0});
      step_s.push_back(compute_time_s(role, input.machine.devices[device], input));
    }
  }
  const auto workers = static_cast<std::uint32_t>(service.clients.size());
  if (sync) {
    service.quorum = workers - options.backup_workers;
    plan.images *= static_cast<double>(service.quorum) / workers;
  } else {
    const std::uint32_t groups = std::min(workers, groups_at_start);
    const double slowest_s = *std::max_element(step_s.begin(), step_s.end());
    for (std::uint32_t w = 0; w < workers; ++w) {
      Service::Client& client = service.clients[w];
      client.start_s = step_s[w] * (client.device % groups) / groups;
      if (options.mode == ServerMode::ssp && step_s[w] < slowest_s * (1 - 1e-9))
        client.head_start = options.staleness;
    }
  }
  if (options.mode == ServerMode::ssp) service.max_lead = options.staleness;
  plan.service = std::move(service);
}

}  // namespace convoy
