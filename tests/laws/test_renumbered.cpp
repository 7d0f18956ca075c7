// SPDX-License-Identifier: MIT
// Numbers of hosts, devices, roles, patterns and communications are names: with others everybody does what he
// did before.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "sim/plan/validate.h"
#include "tests/laws/changed_plans.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

std::vector<std::uint32_t> permutation(std::size_t count, Dice& dice) {
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), 0U);
  shuffle(result, dice);
  return result;
}

/// `values[i]` becomes number `place[i]`.
template <class T>
void reorder(std::vector<T>& values, const std::vector<std::uint32_t>& place) {
  const std::vector<T> before = values;
  for (std::size_t i = 0; i < before.size(); ++i) values[place[i]] = before[i];
}

struct Numbers {
  std::vector<std::uint32_t> host;
  std::vector<EndpointId> device, endpoint;
};

/// Hosts with devices change places with one another, dedicated servers too, and devices within their hosts.
Numbers new_numbers(const Machine& machine, Dice& dice) {
  Numbers result;
  std::vector<std::uint32_t> order(machine.hosts.size());
  std::iota(order.begin(), order.end(), 0U);
  shuffle(order, dice);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::uint32_t h) { return machine.hosts[h].device_count > 0; });
  result.host.resize(machine.hosts.size());
  result.device.resize(machine.devices.size());
  EndpointId next = 0;
  for (std::uint32_t place = 0; place < order.size(); ++place) {
    const Host& host = machine.hosts[order[place]];
    result.host[order[place]] = place;
    for (const std::uint32_t d : permutation(host.device_count, dice))
      result.device[host.first_device + d] = next++;
  }
  result.endpoint = result.device;
  for (std::uint32_t h = 0; h < machine.hosts.size(); ++h)
    result.endpoint.push_back(machine.host_endpoint(result.host[h]));
  return result;
}

void renumber_endpoints(Plan& plan, const Numbers& numbers, Dice& dice) {
  for (Role& role : plan.roles) {
    for (EndpointId& member : role.members) member = numbers.endpoint[member];
    shuffle(role.members, dice);
  }
  for (Pattern& pattern : plan.patterns) {
    for (std::vector<EndpointId>& group : pattern.groups)
      for (EndpointId& member : group) member = numbers.endpoint[member];
    shuffle(pattern.groups, dice);
  }
  if (Service* service = plan.service()) {
    for (Service::Client& client : service->clients) client.device = numbers.endpoint[client.device];
    shuffle(service->clients, dice);
  }
  if (plan.input) {
    reorder(plan.input->interval_s, numbers.host);
    if (!plan.input->limit.empty()) reorder(plan.input->limit, numbers.host);
  }
}

void renumber_parts(Plan& plan, Dice& dice) {
  const std::vector<std::uint32_t> role = permutation(plan.roles.size(), dice),
                                   pattern = permutation(plan.patterns.size(), dice),
                                   comm = permutation(plan.communications.size(), dice);
  for (Role& it : plan.roles)
    for (Task& task : it.program)
      if (task.kind != Task::Kind::compute) task.comm = comm[task.comm];
  for (Communication& communication : plan.communications)
    communication.pattern = pattern[communication.pattern];
  reorder(plan.roles, role);
  reorder(plan.patterns, pattern);
  reorder(plan.communications, comm);
  if (auto* endless = std::get_if<EndlessRun>(&plan.course)) {
    for (std::vector<EndlessRun::End>& step : endless->steps)
      for (EndlessRun::End& end : step) end.role = role[end.role];
    reorder(endless->uses_per_step, pattern);
  }
  if (Service* service = plan.service())
    for (Service::Exchange& exchange : service->exchanges) {
      exchange.push = comm[exchange.push];
      exchange.pull = comm[exchange.pull];
    }
}

}  // namespace

TEST_CASE("hosts and devices with other numbers do what they did before") {
  for_random_plans(8, [](const Experiment& experiment, Dice& dice) {
    const Numbers numbers = new_numbers(experiment.machine(), dice);
    const Machine machine = renumbered(experiment.machine(), numbers.host, numbers.device);
    Plan plan = experiment.plan();
    renumber_endpoints(plan, numbers, dice);
    validate(plan, machine);
    for (const bool fold : {true, false}) {
      CAPTURE(fold);
      check_follows(experiment.run(fold), replay(plan, machine, experiment.cost(), {fold}),
                    {1, 1, numbers.endpoint});
    }
  });
}

TEST_CASE("the order in which roles, patterns and communications are written changes nothing") {
  for_random_plans(6, [](const Experiment& experiment, Dice& dice) {
    Plan plan = experiment.plan();
    renumber_parts(plan, dice);
    validate(plan, experiment.machine());
    check_follows(experiment.run(), replay(plan, experiment.machine(), experiment.cost(), {}));
  });
}
