// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/device_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/collectives/table.h"
#include "sim/lowering/plan_ops.h"
#include "strategies/data_parallel/worker_compute.h"
#include "strategies/replicas.h"

namespace convoy::inline strategies {
namespace {

constexpr int scatter_stream = 1, gather_stream = 2;

/// A message's two ways: gradients in, parameters back.
struct Ways {
  CommId in = 0, back = 0;
};

class DeviceSums {
 public:
  DeviceSums(const ServerOptions& options, const StrategyInput& input)
      : options_(options),
        input_(input),
        machine_(input.machine),
        servers_(server_endpoints(options, machine_)),
        by_owner_(options.local_aggregation == LocalAggregation::owner),
        alone_(node_count(machine_) == 1 && !options.dedicated),
        messages_(
            shard(input.graph, options.sharding, options.servers, options.overlap, options.bucket_bytes)) {
    for (const Host& host : machine_.hosts)
      if (host.device_count > 0 && by_owner_) choose_owners(host.device_count);
  }

  Plan build() {
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      if (!alone_) exchanges_.push_back(add_exchange(m));
      for (const auto& [devices, hosts] : hosts_by_size())
        if (devices > 1)
          local_[devices].push_back(by_owner_ ? add_owned(m, devices, hosts) : add_ring(m, hosts));
    }
    for (const ReplicaClass& replica : share_batch(input_, options_.shares)) {
      plan_.images += static_cast<double>(replica.images) * static_cast<double>(replica.devices.size());
      add_workers(replica);
    }
    if (!alone_ && !messages_.empty()) add_servers();
    return std::move(plan_);
  }

 private:
  void choose_owners(std::uint32_t devices) {
    std::vector<std::uint32_t>& owners = owners_[devices];
    if (!owners.empty()) return;
    std::vector<double> load(devices, 0.0);
    for (const PushMessage& message : messages_) {
      const auto lightest = std::min_element(load.begin(), load.end());
      owners.push_back(static_cast<std::uint32_t>(lightest - load.begin()));
      *lightest += message.bytes;
    }
  }

  std::map<std::uint32_t, std::vector<std::uint32_t>> hosts_by_size() const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> result;
    for (std::uint32_t h = 0; h < machine_.hosts.size(); ++h)
      if (machine_.hosts[h].device_count > 0) result[machine_.hosts[h].device_count].push_back(h);
    return result;
  }

  double targets_of(std::size_t m) const {
    return messages_[m].server == PushMessage::every_server ? static_cast<double>(servers_.size()) : 1.0;
  }
  bool serves(std::uint32_t server, std::size_t m) const {
    return messages_[m].server == PushMessage::every_server || messages_[m].server == server;
  }

  CommId add_communication(std::string name, std::uint32_t pattern, double bytes, double overhead_s) {
    plan_.communications.push_back({std::move(name), pattern, bytes, Fidelity::automatic, overhead_s});
    return static_cast<CommId>(plan_.communications.size() - 1);
  }

  /// A pattern of one round, and its way back; equal ones once.
  std::pair<std::uint32_t, std::uint32_t> add_patterns(const std::vector<std::vector<EndpointId>>& groups,
                                                       Round push) {
    const auto known = patterns_.find({groups, push.pairs});
    if (known != patterns_.end()) return {known->second, known->second + 1};
    Round pull = push.reversed();
    const auto first = static_cast<std::uint32_t>(plan_.patterns.size());
    patterns_.emplace(std::pair{groups, push.pairs}, first);
    plan_.patterns.push_back({groups, {std::move(push)}});
    plan_.patterns.push_back({groups, {std::move(pull)}});
    return {first, first + 1};
  }

  /// Nodes to servers: the owner's sum, or every device's part of it.
  Ways add_exchange(std::size_t m) {
    std::vector<EndpointId> group;
    std::vector<double> part;
    for (const Host& host : machine_.hosts) {
      if (by_owner_ && host.device_count > 0) {
        group.push_back(host.first_device + owners_.at(host.device_count)[m]);
        part.push_back(1);
      }
      for (std::uint32_t d = 0; !by_owner_ && d < host.device_count; ++d) {
        group.push_back(host.first_device + d);
        part.push_back(1.0 / host.device_count);
      }
    }
    const auto clients = static_cast<std::uint32_t>(group.size());
    Round push;
    AllToAll& messages = push.all_to_all.emplace();
    for (std::uint32_t c = 0; c < clients; ++c) messages.senders.push_back({c, part[c]});
    for (std::uint32_t s = 0; s < servers_.size(); ++s) {
      if (!serves(s, m)) continue;
      messages.receivers.push_back({static_cast<std::uint32_t>(group.size()), 1 / targets_of(m)});
      group.push_back(servers_[s]);
    }
    const auto [in, back] = add_patterns({group}, std::move(push));
    const double call_s = machine_.transport.call_s_of(messages_[m].bytes * part[0] / targets_of(m));
    return {add_communication(fmt::format("push {} to servers", m), in, messages_[m].bytes,
                              call_s + (by_owner_ ? sum_s(m, machine_.devices[group[0]]) : 0)),
            add_communication(fmt::format("pull {} from servers", m), back, messages_[m].bytes, call_s)};
  }

  /// What an owner takes to add up a node's gradients.
  double sum_s(std::size_t m, const Device& device) const {
    const std::uint32_t devices = machine_.hosts[device.host].device_count;
    Work work;
    work.kind = KernelKind::elementwise;
    work.flops_fixed = (devices - 1) * messages_[m].bytes / 4;
    work.bytes_fixed = (devices + 1) * messages_[m].bytes;
    return devices < 2 ? 0 : input_.cost.time_s(work, 1, machine_.device_types[device.type]) / device.speed;
  }

  /// What it takes to update the message's parameters.
  double update_s(std::size_t m, const Device& device) const {
    double all_bytes = 0, all_s = 0;
    for (const PushMessage& message : messages_) all_bytes += message.bytes;
    for (const Operation& operation : input_.graph.operations)
      if (operation.phase == Phase::update)
        all_s += input_.cost.time_s(operation.work, 1, machine_.device_types[device.type]) / device.speed;
    return all_s * messages_[m].bytes / all_bytes;
  }

  /// The other devices of a node to the message's owner.
  Ways add_owned(std::size_t m, std::uint32_t devices, const std::vector<std::uint32_t>& hosts) {
    const std::uint32_t owner = owners_.at(devices)[m];
    std::vector<std::vector<EndpointId>> groups;
    for (const std::uint32_t h : hosts) {
      groups.emplace_back();
      for (std::uint32_t d = 0; d < devices; ++d) groups.back().push_back(machine_.hosts[h].first_device + d);
    }
    Round push{{}, {1.0}, 1};
    for (std::uint32_t d = 0; d < devices; ++d)
      if (d != owner) push.pairs.emplace_back(d, owner);
    const auto [in, back] = add_patterns(groups, std::move(push));
    const Device& device = machine_.devices[groups[0][owner]];
    return {add_communication(fmt::format("gradients {} to owner", m), in, messages_[m].bytes, 0),
            add_communication(fmt::format("parameters {} from owner", m), back, messages_[m].bytes,
                              alone_ ? sum_s(m, device) + update_s(m, device) : 0)};
  }

  Ways add_ring(std::size_t m, const std::vector<std::uint32_t>& hosts) {
    const double bytes = messages_[m].bytes;
    const auto of_node = [&](bool gather) {
      Pattern all;
      for (const std::uint32_t h : hosts) {
        std::vector<EndpointId> ranks;
        for (std::uint32_t d = 0; d < machine_.hosts[h].device_count; ++d)
          ranks.push_back(machine_.hosts[h].first_device + d);
        Pattern one = (gather ? all_gather_pattern : reduce_scatter_pattern)(
            AllReduceAlgorithm::ring, ranks, machine_, bytes, RingOrder::mesh);
        if (all.rounds.empty()) all.rounds = one.rounds;
        all.groups.push_back(one.groups[0]);
      }
      return all;
    };
    auto& [scatter, gather] = rings_[machine_.hosts[hosts[0]].device_count];
    if (m == 0) {
      scatter = static_cast<std::uint32_t>(plan_.patterns.size());
      gather = scatter + 1;
      plan_.patterns.push_back(of_node(false));
      plan_.patterns.push_back(of_node(true));
    }
    const double start_s = machine_.collective_overhead_s;
    return {add_communication(fmt::format("reduce-scatter {} in nodes", m), scatter, bytes, start_s),
            add_communication(fmt::format("all-gather {} in nodes", m), gather, bytes, start_s)};
  }

  /// Workers are told apart by the number of devices of their node and, with owners, by their place in it.
  void add_workers(const ReplicaClass& replica) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, ReplicaClass> parts;
    for (const EndpointId device : replica.devices) {
      const Host& host = machine_.hosts[machine_.devices[device].host];
      const std::pair key{host.device_count, by_owner_ ? device - host.first_device : 0};
      parts.try_emplace(key, ReplicaClass{replica.device_type, replica.images, {}})
          .first->second.devices.push_back(device);
    }
    for (const auto& [key, part] : parts) add_worker(part, key.first, key.second);
  }

  bool owns(std::uint32_t devices, std::uint32_t place, std::size_t m) const {
    return !by_owner_ || owners_.at(devices)[m] == place;
  }

  static TaskId add_collective(Role& role, std::string name, CommId comm, int stream,
                               std::vector<TaskId> after) {
    const TaskId id = add_message(role, Task::Kind::collective, std::move(name), comm, std::move(after));
    role.program[id].stream = stream;
    return id;
  }

  /// The way back of message m to a worker. @return the task at whose end its parameters are there
  TaskId add_way_back(Role& role, std::uint32_t devices, std::uint32_t place, std::size_t m,
                      std::vector<TaskId> after) {
    const bool owner = owns(devices, place, m);
    if (owner && !alone_)
      after = {add_message(role, Task::Kind::receive, fmt::format("pull {}", m), exchanges_[m].back, {})};
    if (devices == 1) return after.empty() ? add_compute(role, "no pull", {}, {}) : after.back();
    const CommId back = local_.at(devices)[m].back;
    if (!by_owner_)
      return add_collective(role, fmt::format("all-gather {}", m), back, gather_stream, std::move(after));
    return owner ? add_message(role, Task::Kind::send, fmt::format("hand out {}", m), back, std::move(after))
                 : add_message(role, Task::Kind::receive, fmt::format("parameters {}", m), back, {});
  }

  /// Gradients of message m on their way. @return the task at whose end this worker's part is summed or gone
  TaskId add_way_in(Role& role, std::uint32_t devices, std::uint32_t place, std::size_t m, TaskId ready) {
    TaskId summed = ready;
    if (devices > 1) {
      const CommId in = local_.at(devices)[m].in;
      if (!by_owner_)
        summed = add_collective(role, fmt::format("reduce-scatter {}", m), in, scatter_stream, {ready});
      else if (owns(devices, place, m))
        summed = add_message(role, Task::Kind::receive, fmt::format("node's gradients {}", m), in, {ready});
      else
        return add_message(role, Task::Kind::send, fmt::format("gradients {}", m), in, {ready});
    }
    if (alone_) return summed;
    if (owns(devices, place, m))
      add_message(role, Task::Kind::send, fmt::format("push {}", m), exchanges_[m].in, {summed, ready});
    return summed;
  }

  void add_worker(const ReplicaClass& replica, std::uint32_t devices, std::uint32_t place) {
    Role role = replica_role(
        input_, replica,
        alone_ ? input_.graph.resident_bytes() : without_optimizer(input_.graph.resident_bytes()));
    if (!by_owner_) role.streams = {"compute", "scatter", "gather"};
    const bool first_pulls = options_.pull == PullMode::at_first_use;
    std::vector<TaskId> pulled;
    if (first_pulls)
      for (std::size_t m = 0; m < messages_.size(); ++m)
        pulled.push_back(add_way_back(role, devices, place, m, {}));
    ComputeTasks tasks(role);
    const std::vector<TaskId> ready =
        add_worker_compute(tasks, input_.graph, micro_batch_images(input_, replica, options_.micro_batches),
                           options_.micro_batches, messages_, options_.overlap, pulled);
    std::vector<TaskId> summed;
    for (std::size_t m = 0; m < messages_.size(); ++m)
      summed.push_back(add_way_in(role, devices, place, m, ready[m]));
    std::vector<TaskId> updated(messages_.size());
    if (alone_ && !by_owner_)
      updated.assign(messages_.size(), add_update(role, input_.graph, summed, 1.0 / devices));
    for (std::size_t m = 0; !first_pulls && m < messages_.size(); ++m)
      add_way_back(role, devices, place, m, {alone_ && !by_owner_ ? updated[m] : summed[m]});
    plan_.roles.push_back(std::move(role));
  }

  void add_servers() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<EndpointId>>
        duties;  // type, which messages
    for (std::uint32_t s = 0; s < servers_.size(); ++s) {
      const Host& host = machine_.hosts[servers_[s] - machine_.devices.size()];
      duties[{host.type, options_.sharding == ServerSharding::even ? 0 : s}].push_back(servers_[s]);
    }
    for (auto& [duty, members] : duties) {
      Role role;
      role.name = "server";
      role.members = std::move(members);
      role.streams = {"cpu"};
      add_server_program(role, duty.second, machine_.host_types[duty.first].reduce_bandwidth_Bps);
      if (!role.program.empty()) plan_.roles.push_back(std::move(role));
    }
  }

  void add_server_program(Role& role, std::uint32_t server, double rate_Bps) const {
    const double nodes = node_count(machine_);
    std::vector<std::pair<std::size_t, TaskId>> sums;
    std::vector<TaskId> all;
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      if (!serves(server, m)) continue;
      const TaskId there =
          add_message(role, Task::Kind::receive, fmt::format("gradients {}", m), exchanges_[m].in, {});
      const TaskId sum = add_compute(role, fmt::format("add up and update {}", m), {}, {there});
      role.program[sum].seconds = nodes * messages_[m].bytes / targets_of(m) / rate_Bps;
      sums.emplace_back(m, sum);
      all.push_back(sum);
    }
    for (const auto& [m, sum] : sums) {
      std::vector<TaskId> after{sum};
      if (options_.pull == PullMode::after_all) after = all;
      if (options_.pull == PullMode::at_first_use) after.clear();
      add_message(role, Task::Kind::send, fmt::format("send back {}", m), exchanges_[m].back,
                  std::move(after));
    }
  }

  const ServerOptions& options_;
  const StrategyInput& input_;
  const Machine& machine_;
  std::vector<EndpointId> servers_;
  bool by_owner_;
  bool alone_;  ///< one node whose devices hold the parameters themselves
  std::vector<PushMessage> messages_;
  Plan plan_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> owners_;  ///< by devices of the node, by message: place
  std::map<
      std::pair<std::vector<std::vector<EndpointId>>, std::vector<std::pair<std::uint32_t, std::uint32_t>>>,
      std::uint32_t>
      patterns_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> rings_;  ///< by devices of the node
  std::map<std::uint32_t, std::vector<Ways>> local_;                        ///< the same, by message
  std::vector<Ways> exchanges_;                                             ///< with the servers, by message
};

}  // namespace

Plan plan_device_sums(const ServerOptions& options, const StrategyInput& input) {
  return DeviceSums(options, input).build();
}

}  // namespace convoy::strategies
