// SPDX-License-Identifier: MIT
#include "sim/lowering/averaging.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/lowering/plan_ops.h"

namespace convoy::inline lowering {
namespace {

constexpr double parameter_bytes = 4, low_copy_bytes = 2;
constexpr int communicating = 1;  ///< stream of a replica's role

/// 1, 2, 4 ... below the number of devices.
std::vector<std::uint32_t> distances(std::uint32_t devices) {
  std::vector<std::uint32_t> all;
  for (std::uint64_t distance = 1; distance < devices; distance *= 2)
    all.push_back(static_cast<std::uint32_t>(distance));
  return all;
}

/// That are in the host of the first one; all hosts have as many.
std::uint32_t devices_of_a_host(const std::vector<EndpointId>& devices, const Machine& machine) {
  return static_cast<std::uint32_t>(std::count_if(devices.begin(), devices.end(), [&](EndpointId e) {
    return machine.devices[e].host == machine.devices[devices.front()].host;
  }));
}

}  // namespace

std::int64_t Averaging::period(const Machine& machine) const {
  if (with == With::one_peer) {
    const auto hosts = std::count_if(machine.hosts.begin(), machine.hosts.end(),
                                     [](const Host& host) { return host.device_count > 0; });
    const auto units =
        static_cast<std::uint32_t>(sums_in_hosts ? static_cast<std::size_t>(hosts) : machine.devices.size());
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(distances(units).size()));
  }
  return with == With::all ? every : 1;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> neighbours(Averaging::With with, std::uint32_t devices,
                                                                std::int64_t step) {
  std::vector<std::uint32_t> to = distances(devices);
  if (with == Averaging::With::ring) {
    to = {1};
    if (devices > 2) to.push_back(devices - 1);
  }
  if (with == Averaging::With::one_peer && !to.empty()) to = {to[static_cast<std::size_t>(step) % to.size()]};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  if (devices < 2) return pairs;
  for (const std::uint32_t distance : to)
    for (std::uint32_t from = 0; from < devices; ++from)
      pairs.emplace_back(from, (from + distance) % devices);
  return pairs;
}

ParameterAverages::ParameterAverages(const Averaging& averaging, const GradientSync& sync,
                                     const TrainingGraph& graph, const Machine& machine,
                                     std::vector<EndpointId> devices, const std::vector<double>& elements,
                                     Plan& plan)
    : averaging_(averaging),
      sync_(sync),
      graph_(graph),
      machine_(machine),
      devices_(std::move(devices)),
      together_(averaging.sums_in_hosts && averaging.is_gossip() ? devices_of_a_host(devices_, machine) : 1),
      plan_(plan),
      steps_(averaging.period(machine)) {
  const double largest = sync.bucket_given ? sync.bucket_bytes : std::numeric_limits<double>::infinity();
  const double of_gradient = element_bytes(graph.options.precision);
  for (Bucket& bucket : fill_buckets_of(graph, largest * of_gradient / parameter_bytes, elements)) {
    Message& message = messages_.emplace_back();
    message.elements = bucket.bytes / of_gradient;
    message.is_copied = !machine.transport.ideal() && bucket.parameters.size() > 1;
    message.bucket = std::move(bucket);
  }
  std::stable_sort(devices_.begin(), devices_.end(), [&](EndpointId a, EndpointId b) {
    return machine.devices[a].host < machine.devices[b].host;
  });
  if (!is_alone()) add_communications();
}

double ParameterAverages::slow_bytes() const {
  double elements = 0;
  for (const Message& message : messages_) elements += message.elements;
  return averaging_.slow_momentum > 0 && !is_alone() ? 2 * parameter_bytes * elements : 0;
}

void ParameterAverages::add_communications() {
  if (!averaging_.is_gossip()) check_all_reduce(sync_, devices_, machine_);
  const std::int64_t different = averaging_.is_gossip() ? steps_ : 1;
  std::vector<std::uint32_t> patterns;  // of gossip, by step
  for (std::int64_t step = 0; averaging_.is_gossip() && !averaging_.asynchronous && step < different;
       ++step) {
    patterns.push_back(static_cast<std::uint32_t>(plan_.patterns.size()));
    plan_.patterns.push_back({{devices_}, exchange_rounds(step)});
  }
  for (std::size_t b = 0; b < messages_.size(); ++b) {
    Message& message = messages_[b];
    const double bytes = message.elements * parameter_bytes;
    if (plan_.meaning) {
      message.meaning = static_cast<std::uint32_t>(plan_.meaning->buckets.size());
      BucketMeaning meaning{message.bucket.parameters, 0, parameter_bytes};
      meaning.slow_momentum = averaging_.slow_momentum;
      plan_.meaning->buckets.push_back(std::move(meaning));
    }
    if (averaging_.asynchronous) continue;
    for (std::int64_t step = 0; step < different; ++step) {
      std::uint32_t pattern = 0;
      if (averaging_.is_gossip()) {
        pattern = patterns[static_cast<std::size_t>(step)];
      } else {
        pattern = static_cast<std::uint32_t>(plan_.patterns.size());
        plan_.patterns.push_back(all_reduce_pattern(sync_.algorithm, devices_, machine_, bytes, sync_.rings));
      }
      add_communication(message,
                        averaging_.is_gossip()
                            ? fmt::format("parameters of bucket {} to neighbours{}", b,
                                          different > 1 ? fmt::format(", step {}", step) : "")
                            : fmt::format("average of bucket {}", b),
                        pattern);
    }
  }
  if (averaging_.asynchronous) add_exchanges();
}

/// To the device after it on the ring, and back.
void ParameterAverages::add_exchanges() {
  Round there{{}, {1.0}};
  const auto devices = static_cast<std::uint32_t>(devices_.size());
  for (std::uint32_t from = 0; from < devices; ++from) there.pairs.emplace_back(from, (from + 1) % devices);
  const auto first = static_cast<std::uint32_t>(plan_.patterns.size());
  Round back = there.reversed();
  plan_.patterns.push_back({{devices_}, {std::move(there)}});
  plan_.patterns.push_back({{devices_}, {std::move(back)}});
  for (std::size_t b = 0; b < messages_.size(); ++b) {
    add_communication(messages_[b], fmt::format("parameters of bucket {} to a neighbour", b), first);
    add_communication(messages_[b], fmt::format("parameters of bucket {} from a neighbour", b), first + 1);
  }
}

std::vector<Service::Exchange> ParameterAverages::exchanges() const {
  std::vector<Service::Exchange> exchanges;
  for (const Message& message : messages_)
    if (averaging_.asynchronous && !is_alone()) exchanges.push_back({message.comms[0], message.comms[1]});
  return exchanges;
}

void ParameterAverages::add_communication(Message& message, std::string name, std::uint32_t pattern) {
  message.comms.push_back(static_cast<CommId>(plan_.communications.size()));
  Communication comm;
  comm.name = std::move(name);
  comm.pattern = pattern;
  comm.bytes = message.elements * parameter_bytes;
  comm.fidelity = sync_.fidelity;
  comm.overhead_s = machine_.collective_overhead_s;
  comm.purpose = averaging_.is_gossip() ? CommPurpose::neighbours : CommPurpose::all_reduce;
  if (plan_.meaning) {
    CommMeaning meaning;
    meaning.kind = averaging_.is_gossip() ? CommMeaning::Kind::exchange : CommMeaning::Kind::average;
    meaning.bucket = message.meaning;
    meaning.together = together_;
    comm.meaning = static_cast<std::uint32_t>(plan_.meaning->communications.size());
    plan_.meaning->communications.push_back(std::move(meaning));
  }
  plan_.communications.push_back(std::move(comm));
}

/// From the first device of each host to those of its neighbours, and from there to the others in the host
/// along a binomial tree.
std::vector<Round> ParameterAverages::exchange_rounds(std::int64_t step) const {
  const auto hosts = static_cast<std::uint32_t>(devices_.size()) / together_;
  std::vector<Round> rounds{{neighbours(averaging_.with, hosts, step), {1.0}}};
  for (auto& [from, to] : rounds.front().pairs) from *= together_, to *= together_;
  for (std::uint32_t reached = 1; reached < together_; reached *= 2) {
    Round round{{}, {1.0}};
    for (std::uint32_t first = 0; first < devices_.size(); first += together_)
      for (std::uint32_t i = 0; i < reached && i + reached < together_; ++i)
        round.pairs.emplace_back(first + i, first + i + reached);
    rounds.push_back(std::move(round));
  }
  return rounds;
}

/// Messages that a device gets of each bucket in a step.
double ParameterAverages::received(std::int64_t step) const {
  if (together_ > 1) return 1;
  if (averaging_.asynchronous) return 2;  // the answer, and what another device asks with
  const auto devices = static_cast<std::uint32_t>(devices_.size());
  return static_cast<double>(neighbours(averaging_.with, devices, step).size()) / devices;
}

void ParameterAverages::begin_step(Role& role, ComputeTasks& tasks, std::int64_t step) {
  if (averaging_.is_gossip() && sync_.overlap && !is_alone()) send(role, tasks, step);
}

void ParameterAverages::before_update(ComputeTasks& tasks, std::int64_t step) {
  if (averaging_.is_gossip() && sync_.overlap && !is_alone()) average(tasks, step);
}

void ParameterAverages::after_update(Role& role, ComputeTasks& tasks, std::int64_t step) {
  if (is_alone()) return;
  if (averaging_.is_gossip() ? sync_.overlap : step + 1 < steps_) return;
  send(role, tasks, step);
  average(tasks, step);
}

void ParameterAverages::send(Role& role, ComputeTasks& tasks, std::int64_t step) {
  for (std::size_t b = 0; b < messages_.size(); ++b) {
    Message& message = messages_[b];
    const double bytes = message.elements * parameter_bytes;
    if (message.is_copied) {
      tasks.add_unnamed(elementwise_op(fmt::format("average {} filled", b), message.elements, 2 * bytes));
      message.sent = tasks.hold({MemoryClass::workspace, bytes});
      tasks.use(message.sent);
    }
    if (averaging_.is_gossip()) {
      tasks.add_unnamed(memory_op(fmt::format("average {} received", b), {}, {}));
      message.came = tasks.hold({MemoryClass::workspace, received(step) * bytes});
      tasks.use(message.came);
    }
    const TaskId ready = tasks.close();
    if (averaging_.asynchronous) {
      const TaskId sent = add_message(role, Task::Kind::send, plan_.communications[message.comms[0]].name,
                                      message.comms[0], {ready});
      message.done = add_message(role, Task::Kind::receive, plan_.communications[message.comms[1]].name,
                                 message.comms[1], {sent});
      continue;
    }
    const CommId comm = message.comms[averaging_.is_gossip() ? static_cast<std::size_t>(step) : 0];
    message.done = add_message(role, Task::Kind::collective, plan_.communications[comm].name, comm, {ready});
    role.program[message.done].stream = communicating;
  }
}

void ParameterAverages::average(ComputeTasks& tasks, std::int64_t step) {
  const bool has_copy = element_bytes(graph_.options.precision) == low_copy_bytes;
  for (std::size_t b = 0; b < messages_.size(); ++b) {
    const Message& message = messages_[b];
    const double read = averaging_.is_gossip() ? 1 + received(step) : 1, n = message.elements;
    tasks.wait_for(message.done);
    tasks.add(elementwise_op(fmt::format("average {} taken", b), read * n,
                             n * ((read + 1) * parameter_bytes + (has_copy ? low_copy_bytes : 0))));
    mean_act(tasks, OpMeaning::Act::mean, message);
    if (averaging_.asynchronous)
      tasks.add(elementwise_op(fmt::format("average {} for a neighbour", b), 2 * n, 3 * parameter_bytes * n));
    if (message.is_copied) tasks.use(message.sent);
    if (averaging_.is_gossip()) tasks.use(message.came);
    if (averaging_.slow_momentum == 0) continue;
    tasks.add(elementwise_op(fmt::format("average {}: slow momentum", b), 4 * n, 6 * parameter_bytes * n));
    mean_act(tasks, OpMeaning::Act::slow, message);
  }
  tasks.close(fmt::format("averages{}", steps_ > 1 ? fmt::format(" of step {}", step) : ""));
}

/// Of the operation that was added last.
void ParameterAverages::mean_act(ComputeTasks& tasks, OpMeaning::Act act, const Message& message) const {
  if (!plan_.meaning) return;
  OpMeaning meaning;
  meaning.act = act;
  meaning.bucket = message.meaning;
  tasks.mean(*plan_.meaning, meaning);
}

}  // namespace convoy::lowering
