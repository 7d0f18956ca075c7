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

}  // namespace

std::int64_t Averaging::period(std::size_t devices) const {
  if (with == With::one_peer)
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(distances(static_cast<std::uint32_t>(devices)).size()));
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
      plan_(plan),
      steps_(averaging.period(devices_.size())) {
  const double largest = sync.bucket_given ? sync.bucket_bytes : std::numeric_limits<double>::infinity();
  const double of_gradient = element_bytes(graph.options.precision);
  for (Bucket& bucket : fill_buckets_of(graph, largest * of_gradient / parameter_bytes, elements)) {
    Message& message = messages_.emplace_back();
    message.elements = bucket.bytes / of_gradient;
    message.is_copied = !machine.transport.ideal() && bucket.parameters.size() > 1;
    message.bucket = std::move(bucket);
  }
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
  for (std::int64_t step = 0; averaging_.is_gossip() && step < different; ++step) {
    Round round{neighbours(averaging_.with, static_cast<std::uint32_t>(devices_.size()), step), {1.0}};
    patterns.push_back(static_cast<std::uint32_t>(plan_.patterns.size()));
    plan_.patterns.push_back({{devices_}, {std::move(round)}});
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
    for (std::int64_t step = 0; step < different; ++step) {
      std::uint32_t pattern = 0;
      if (averaging_.is_gossip()) {
        pattern = patterns[static_cast<std::size_t>(step)];
      } else {
        pattern = static_cast<std::uint32_t>(plan_.patterns.size());
        plan_.patterns.push_back(all_reduce_pattern(sync_.algorithm, devices_, machine_, bytes, sync_.rings));
      }
      message.comms.push_back(static_cast<CommId>(plan_.communications.size()));
      Communication comm;
      comm.name = averaging_.is_gossip() ? fmt::format("parameters of bucket {} to neighbours{}", b,
                                                       different > 1 ? fmt::format(", step {}", step) : "")
                                         : fmt::format("average of bucket {}", b);
      comm.pattern = pattern;
      comm.bytes = bytes;
      comm.fidelity = sync_.fidelity;
      comm.overhead_s = machine_.collective_overhead_s;
      comm.purpose = averaging_.is_gossip() ? CommPurpose::neighbours : CommPurpose::all_reduce;
      if (plan_.meaning) {
        CommMeaning meaning;
        meaning.kind = averaging_.is_gossip() ? CommMeaning::Kind::exchange : CommMeaning::Kind::average;
        meaning.bucket = message.meaning;
        comm.meaning = static_cast<std::uint32_t>(plan_.meaning->communications.size());
        plan_.meaning->communications.push_back(std::move(meaning));
      }
      plan_.communications.push_back(std::move(comm));
    }
  }
}

/// Messages that a device gets of each bucket in a step.
double ParameterAverages::received(std::int64_t step) const {
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
    const CommId comm = message.comms[averaging_.is_gossip() ? static_cast<std::size_t>(step) : 0];
    const TaskId ready = tasks.close();
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
