// SPDX-License-Identifier: MIT
#include "sim/lowering/service_rule.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline lowering {
namespace {

constexpr std::uint32_t groups_at_start = 8;   ///< of ssp
constexpr std::uint32_t most_phases = 64;      ///< of async
constexpr std::uint32_t most_sequences = 256;  ///< of backup workers
/// Of async where messages share links fairly: compute times are drawn evenly from 50 to 150 %, so that who
/// meets whom on the network changes from step to step.
constexpr double compute_spread = 0.5;
/// Of async with servers that take messages in order: until workers have pushed each other apart.
constexpr std::uint32_t steps_to_drift = 16;

/// Of async where devices of a host share its connection to servers that take messages in order: nothing
/// pushes them apart, and with the least jitter they meet at every phase in the long run. A phase drifts by
/// the deviation of a step's compute time; this is one with which it drifts over a step in 2^16 messages of all
/// clients, half of what may be simulated (sim/replay/repeated_services.h).
double least_jitter(std::uint32_t workers, std::size_t messages) {
  const double steps = 0x1p16 / (workers * static_cast<double>(messages));
  return std::min(compute_spread / std::sqrt(3.0), 2 / std::sqrt(steps));
}

bool shares_hosts(const Machine& machine) {
  return std::any_of(machine.hosts.begin(), machine.hosts.end(),
                     [](const Host& host) { return host.device_count > 1; });
}

/// In which a device, whose host issues them, comes through a step's operations, without jitter.
double compute_time_s(const Role& role, const Device& device, const Machine& machine, const CostModel& cost) {
  IssueQueue queue(cost.begin_s(machine.device_types[device.type]));
  for (const Task& task : role.program)
    for (const PlanOp& op : task.ops) queue.run(cost.queued_time(op.work, op.images, machine, device));
  return queue.end_s();
}

/// In [0, 1), different for each worker: the Weyl sequence of the golden ratio from 0.5 on.
double random_phase(std::uint32_t worker) {
  const double turns = 0.5 + worker * 0.6180339887498949;
  return turns - std::floor(turns);
}

}  // namespace

void add_service(const ServerExchange& exchange, const ServerMessages& messages, const Machine& machine,
                 const CostModel& cost, const std::vector<double>& images, Plan& plan) {
  Service service;
  for (std::size_t m = 0; m < messages.size(); ++m)
    service.exchanges.push_back(
        {messages.with_servers(m).in, messages.with_servers(m).back, messages.added_bytes(m)});
  const bool sync = exchange.mode == ServerMode::sync;
  std::vector<double> step_s;
  for (std::size_t r = 0; r < images.size(); ++r)
    for (const EndpointId device : plan.roles[r].members) {
      service.clients.push_back({device, images[r], 0, 0});
      step_s.push_back(compute_time_s(plan.roles[r], machine.devices[device], machine, cost));
    }
  const auto workers = static_cast<std::uint32_t>(service.clients.size());
  if (sync) {
    service.quorum = workers - exchange.backup_workers;
    plan.images *= static_cast<double>(service.quorum) / workers;
    service.step_jitter = machine.step_jitter;
    for (std::uint32_t w = 0; w < workers && service.step_jitter > 0; ++w)
      service.clients[w].sequence = w % most_sequences;
  } else if (exchange.mode == ServerMode::async) {
    service.measured_steps = 4;
    if (workers > 1 && machine.transport.in_order) {
      service.drifts = !shares_hosts(machine);
      service.step_jitter =
          service.drifts ? machine.step_jitter
                         : std::max(machine.step_jitter, least_jitter(workers, messages.size()));
      service.warm_up_steps = steps_to_drift;
    } else if (workers > 1) {
      service.compute_spread = compute_spread;
    }
    for (std::uint32_t w = 0; w < workers; ++w) {
      service.clients[w].start_s = step_s[w] * random_phase(w % most_phases);
      service.clients[w].sequence = w % most_phases;
    }
  } else {
    const std::uint32_t groups = std::min(workers, groups_at_start);
    const double slowest_s = *std::max_element(step_s.begin(), step_s.end());
    for (std::uint32_t w = 0; w < workers; ++w) {
      Service::Client& client = service.clients[w];
      client.start_s = step_s[w] * (client.device % groups) / groups;
      if (step_s[w] < slowest_s * (1 - 1e-9)) client.head_start = exchange.staleness;
    }
    service.max_lead = exchange.staleness;
  }
  plan.course = std::move(service);
}

Service service_of_peers(std::vector<Service::Exchange> exchanges, const Plan& plan, const Machine& machine,
                         const CostModel& cost, const std::vector<double>& images) {
  Service service;
  service.exchanges = std::move(exchanges);
  service.measured_steps = 4;
  service.warm_up_steps = steps_to_drift;
  for (const Role& role : plan.roles)
    for (const EndpointId device : role.members) {
      const double step_s = compute_time_s(role, machine.devices[device], machine, cost);
      const std::uint32_t phase = device % most_phases;
      service.clients.push_back({device, images[device], step_s * random_phase(phase), 0, phase});
    }
  service.step_jitter =
      std::max(machine.step_jitter,
               least_jitter(static_cast<std::uint32_t>(service.clients.size()), service.exchanges.size()));
  return service;
}

Plan shared_fairly(Plan plan) {
  for (Pattern& pattern : plan.patterns) pattern.in_order = false;
  Service& service = *plan.service();
  const bool async = service.quorum == 0 && service.max_lead == Service::unbounded;
  if (async && service.clients.size() > 1) {
    service.drifts = false;
    service.step_jitter = 0;
    service.compute_spread = compute_spread;
  }
  return plan;
}

}  // namespace convoy::lowering
