// SPDX-License-Identifier: MIT
#include "strategies/data_parallel/server_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "sim/lowering/plan_ops.h"
#include "strategies/data_parallel/device_sums.h"
#include "strategies/data_parallel/service_plan.h"
#include "strategies/data_parallel/worker_compute.h"

namespace convoy::inline strategies {
namespace {

/// Both directions of a message: clients push to servers, servers send back to clients.
TaskId add_sum(Role& role, std::string name, double seconds, std::vector<TaskId> after) {
  Task task;
  task.name = std::move(name);
  task.seconds = seconds;
  task.after = std::move(after);
  role.program.push_back(std::move(task));
  return static_cast<TaskId>(role.program.size() - 1);
}

class ServerPlanner {
 public:
  ServerPlanner(const ServerOptions& options, const StrategyInput& input)
      : options_(options),
        input_(input),
        machine_(input.machine),
        compressor_(options.compression, input.graph, 1) {
    const std::uint32_t nodes = node_count(machine_);
    servers_ = server_endpoints(options, machine_);
    messages_ = shard(input.graph, options.sharding, options.servers, options.overlap, options.bucket_bytes);
    if (options.local_aggregation == LocalAggregation::host) {
      for (std::uint32_t h = 0; h < nodes; ++h) clients_.push_back(machine_.host_endpoint(h));
    } else {
      for (EndpointId d = 0; d < machine_.devices.size(); ++d) clients_.push_back(d);
    }
  }

  Plan build() {
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      exchanges_.push_back(add_exchange(m, server_patterns(messages_[m].server), Whom::servers));
      if (options_.local_aggregation == LocalAggregation::host)
        for (const auto& [device_count, patterns] : local_patterns())
          local_exchanges_[device_count].push_back(add_exchange(m, patterns, Whom::node));
    }
    for (const ReplicaClass& replica : share_batch(input_, options_.shares)) {
      plan_.images += static_cast<double>(replica.images) * static_cast<double>(replica.devices.size());
      add_workers(replica);
    }
    if (is_service()) {
      add_service(options_, input_, exchanges_, plan_);
      Role role{"server", servers_, {"cpu"}, {}, {}};
      if (!exchanges_.empty()) plan_.roles.push_back(std::move(role));
    } else {
      add_hosts();
    }
    return std::move(plan_);
  }

 private:
  using PatternPair = std::pair<std::uint32_t, std::uint32_t>;  ///< push, pull
  enum class Whom : std::uint8_t { servers, node };             ///< that workers push to: or their own host

  bool sums_on_hosts() const { return options_.local_aggregation == LocalAggregation::host; }

  bool is_target(const PushMessage& message, std::uint32_t server) const {
    return message.server == PushMessage::every_server || message.server == server;
  }

  PatternPair add_patterns(const std::vector<std::vector<EndpointId>>& groups, Round push) {
    Round pull = push.reversed();
    plan_.patterns.push_back({groups, {std::move(push)}});
    plan_.patterns.push_back({groups, {std::move(pull)}});
    const auto last = static_cast<std::uint32_t>(plan_.patterns.size() - 1);
    return {last - 1, last};
  }

  /// Clients to one server, or to every server an equal part. Nobody sends to himself.
  PatternPair server_patterns(std::uint32_t server) {
    if (const auto known = server_patterns_.find(server); known != server_patterns_.end())
      return known->second;
    std::vector<EndpointId> targets = servers_;
    if (server != PushMessage::every_server) targets = {servers_[server]};
    std::vector<EndpointId> group = clients_;
    std::unordered_map<EndpointId, std::uint32_t> position_of;
    for (std::uint32_t c = 0; c < clients_.size(); ++c) position_of.emplace(clients_[c], c);
    std::vector<std::uint32_t> positions;
    for (const EndpointId target : targets) {
      const auto [known, fresh] = position_of.emplace(target, static_cast<std::uint32_t>(group.size()));
      if (fresh) group.push_back(target);
      positions.push_back(known->second);
    }
    const double part = 1.0 / static_cast<double>(targets.size());
    Round push = targets.size() > 1 && !is_service() ? all_to_all(positions, part) : listed(positions, part);
    return server_patterns_.emplace(server, add_patterns({std::move(group)}, std::move(push))).first->second;
  }

  /// Every client to every server.
  Round all_to_all(const std::vector<std::uint32_t>& servers, double part) const {
    Round push;
    AllToAll& messages = push.all_to_all.emplace();
    for (std::uint32_t client = 0; client < clients_.size(); ++client)
      messages.senders.push_back({client, 1});
    for (const std::uint32_t server : servers) messages.receivers.push_back({server, part});
    return push;
  }
  Round listed(const std::vector<std::uint32_t>& servers, double part) const {
    Round push{{}, {part}, 1};
    for (const std::uint32_t server : servers)
      for (std::uint32_t client = 0; client < clients_.size(); ++client)
        if (client != server) push.pairs.emplace_back(client, server);
    return push;
  }

  /// Whether servers answer by a rule. Without parameters there is nothing to wait for.
  bool is_service() const {
    return options_.one_by_one() && (!messages_.empty() || options_.mode != ServerMode::sync);
  }

  /// Devices of each node to their host's memory; by the number of devices of the node.
  const std::map<std::uint32_t, PatternPair>& local_patterns() {
    if (!local_patterns_.empty()) return local_patterns_;
    std::map<std::uint32_t, std::vector<std::vector<EndpointId>>> groups;
    for (std::uint32_t h = 0; h < clients_.size(); ++h) {
      const Host& host = machine_.hosts[h];
      std::vector<EndpointId> group{machine_.host_endpoint(h)};
      for (std::uint32_t d = 0; d < host.device_count; ++d) group.push_back(host.first_device + d);
      groups[host.device_count].push_back(std::move(group));
    }
    for (const auto& [device_count, hosts] : groups) {
      Round push{{}, {1.0}, 1};
      for (std::uint32_t d = 1; d <= device_count; ++d) push.pairs.emplace_back(d, 0);
      local_patterns_.emplace(device_count, add_patterns(hosts, std::move(push)));
    }
    return local_patterns_;
  }

  Service::Exchange add_exchange(std::size_t m, PatternPair patterns, Whom to) {
    const double bytes = messages_[m].bytes;
    const double call_s = to == Whom::servers ? machine_.transport.call_s_of(bytes / target_count(m)) : 0;
    const std::string_view whom = to == Whom::servers ? "servers" : "node";
    plan_.communications.push_back({fmt::format("push {} to {}", m, whom), patterns.first,
                                    compressor_.sent_bytes(bytes), Fidelity::automatic, call_s});
    plan_.communications.push_back(
        {fmt::format("pull {} from {}", m, whom), patterns.second, bytes, Fidelity::automatic, call_s});
    const auto last = static_cast<CommId>(plan_.communications.size() - 1);
    return {last - 1, last, added_bytes(m)};
  }

  /// What the CPUs of a host add up of one push of message m: gradients, or pairs of index and gradient.
  double added_bytes(std::size_t m) const {
    const double bytes = messages_[m].bytes;
    return options_.compression.kind == Compression::Kind::top_k ? compressor_.sent_bytes(bytes) : bytes;
  }

  /// Workers that push to their node's host are told apart by its number of devices: they use different
  /// patterns.
  void add_workers(const ReplicaClass& replica) {
    std::map<std::uint32_t, ReplicaClass> by_device_count;
    for (const EndpointId device : replica.devices) {
      const std::uint32_t count =
          sums_on_hosts() ? machine_.hosts[machine_.devices[device].host].device_count : 0;
      by_device_count.try_emplace(count, ReplicaClass{replica.device_type, replica.images, {}})
          .first->second.devices.push_back(device);
    }
    for (const auto& [count, part] : by_device_count)
      add_worker_role(part, sums_on_hosts() ? local_exchanges_[count] : exchanges_);
  }

  void add_worker_role(const ReplicaClass& replica, const std::vector<Service::Exchange>& exchanges) {
    Role role = replica_role(input_, replica, without_optimizer(input_.graph.resident_bytes()));
    std::vector<TaskId> sent, pulled;
    const bool at_first_use = options_.pull == PullMode::at_first_use;
    const auto pull = [&](std::size_t m) {
      return add_message(role, Task::Kind::receive, fmt::format("pull {}", m), exchanges[m].pull, {});
    };
    if (at_first_use)
      for (std::size_t m = 0; m < messages_.size(); ++m) pulled.push_back(pull(m));
    ComputeTasks tasks(role);
    std::vector<std::size_t> buffers(messages_.size());
    const auto compress = [&](std::size_t m) {
      buffers[m] = compressor_.add_compression(tasks, m, messages_[m].bytes);
    };
    const std::vector<TaskId> ready =
        add_worker_compute(tasks, input_.graph, micro_batch_images(input_, replica, options_.micro_batches),
                           options_.micro_batches, messages_, options_.overlap, pulled,
                           compressor_.active() ? std::function<void(std::size_t)>(compress) : nullptr);
    for (std::size_t m = 0; m < messages_.size(); ++m) {
      role.resident_bytes[static_cast<std::size_t>(MemoryClass::gradients)] +=
          compressor_.residual_bytes(messages_[m].bytes);
      sent.push_back(
          add_message(role, Task::Kind::send, fmt::format("push {}", m), exchanges[m].push, {ready[m]}));
      if (!at_first_use) pull(m);
    }
    for (std::size_t m = 0; m < messages_.size() && compressor_.active(); ++m)
      Compressor::add_release(tasks, buffers[m], m, sent[m]);
    tasks.place_tensors();
    plan_.roles.push_back(std::move(role));
  }

  /// What a host does: index of the server it runs (every_server where all servers do the same), devices it
  /// adds up for.
  struct HostDuty {
    std::optional<std::uint32_t> server;
    std::uint32_t device_count;
    std::uint32_t type;
    auto operator<=>(const HostDuty&) const = default;
  };

  void add_hosts() {
    std::map<HostDuty, std::vector<EndpointId>> duties;
    std::unordered_map<EndpointId, std::uint32_t> server_of;
    for (std::uint32_t s = 0; s < servers_.size(); ++s) server_of.emplace(servers_[s], s);
    for (std::uint32_t h = 0; h < machine_.hosts.size(); ++h) {
      const Host& host = machine_.hosts[h];
      HostDuty duty{std::nullopt, sums_on_hosts() ? host.device_count : 0, host.type};
      if (const auto server = server_of.find(machine_.host_endpoint(h)); server != server_of.end())
        duty.server = options_.sharding == ServerSharding::even ? PushMessage::every_server : server->second;
      if (duty.server || duty.device_count > 0) duties[duty].push_back(machine_.host_endpoint(h));
    }
    for (auto& [duty, members] : duties) plan_.roles.push_back(host_role(duty, std::move(members)));
  }

  Role host_role(const HostDuty& duty, std::vector<EndpointId> members) const {
    Role role;
    role.name = !duty.server ? "node host" : duty.device_count > 0 ? "node host and server" : "server";
    role.members = std::move(members);
    role.streams = {"cpu"};
    std::vector<std::vector<TaskId>> updated;  // by message: what must be done before it goes back
    for (std::size_t m = 0; m < messages_.size(); ++m) updated.push_back(add_sums(role, duty, m));
    if (options_.pull == PullMode::after_all) {
      std::vector<TaskId> all;
      for (const std::vector<TaskId>& tasks : updated) all.insert(all.end(), tasks.begin(), tasks.end());
      for (std::vector<TaskId>& tasks : updated)
        if (!tasks.empty()) tasks = all;
    }
    // What the first use pulls has been updated in the step before.
    const std::vector<TaskId> at_once;
    for (std::size_t m = 0; m < messages_.size(); ++m)
      add_pulls(role, duty, m, options_.pull == PullMode::at_first_use ? at_once : updated[m]);
    return role;
  }

  bool serves(const HostDuty& duty, std::size_t m) const {
    return duty.server && is_target(messages_[m], *duty.server);
  }
  double target_count(std::size_t m) const {
    return messages_[m].server == PushMessage::every_server ? static_cast<double>(servers_.size()) : 1.0;
  }
  bool has_remote_target(const HostDuty& duty, std::size_t m) const {
    return duty.device_count > 0 && target_count(m) > (serves(duty, m) ? 1.0 : 0.0);
  }

  /// A host's part in message m up to the updated parameters; returns the update's task, if this host serves
  /// it.
  std::vector<TaskId> add_sums(Role& role, const HostDuty& duty, std::size_t m) const {
    const double bytes = added_bytes(m), rate = machine_.host_types[duty.type].reduce_bandwidth_Bps;
    std::vector<TaskId> before;
    if (duty.device_count > 0) {
      const TaskId pushed = add_message(role, Task::Kind::receive, fmt::format("node's gradients {}", m),
                                        local_exchanges_.at(duty.device_count)[m].push, {});
      before = {add_sum(role, fmt::format("add up node's gradients {}", m), duty.device_count * bytes / rate,
                        {pushed})};
    }
    if (has_remote_target(duty, m))
      add_message(role, Task::Kind::send, fmt::format("push {}", m), exchanges_[m].push, before);
    if (!serves(duty, m)) return {};
    const double senders = static_cast<double>(clients_.size()) - (duty.device_count > 0 ? 1 : 0);
    before.push_back(
        add_message(role, Task::Kind::receive, fmt::format("gradients {}", m), exchanges_[m].push, {}));
    return {add_sum(role, fmt::format("add up and update {}", m), senders * bytes / target_count(m) / rate,
                    before)};
  }

  /// The way back of message m: from this host's server, and to this host's devices.
  void add_pulls(Role& role, const HostDuty& duty, std::size_t m, const std::vector<TaskId>& updated) const {
    std::vector<TaskId> before = updated;
    if (serves(duty, m))
      add_message(role, Task::Kind::send, fmt::format("send back {}", m), exchanges_[m].pull, updated);
    if (has_remote_target(duty, m))
      before.push_back(
          add_message(role, Task::Kind::receive, fmt::format("pull {}", m), exchanges_[m].pull, {}));
    if (duty.device_count > 0)
      add_message(role, Task::Kind::send, fmt::format("hand out {}", m),
                  local_exchanges_.at(duty.device_count)[m].pull, before);
  }

  const ServerOptions& options_;
  const StrategyInput& input_;
  const Machine& machine_;
  Compressor compressor_;
  Plan plan_;
  std::vector<EndpointId> servers_, clients_;
  std::vector<PushMessage> messages_;
  std::map<std::uint32_t, PatternPair> server_patterns_;  ///< by target
  std::map<std::uint32_t, PatternPair> local_patterns_;   ///< by devices of the node
  std::vector<Service::Exchange> exchanges_;              ///< with the servers, by message
  std::map<std::uint32_t, std::vector<Service::Exchange>>
      local_exchanges_;  ///< within nodes, by devices of the node
};

}  // namespace

Plan plan_parameter_server(const ServerOptions& options, const StrategyInput& input) {
  if (options.sums_on_devices()) return plan_device_sums(options, input);
  return ServerPlanner(options, input).build();
}

}  // namespace convoy::strategies
