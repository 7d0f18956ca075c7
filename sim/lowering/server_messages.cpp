// SPDX-License-Identifier: MIT
#include "sim/lowering/server_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "sim/collectives/table.h"

namespace convoy::inline lowering {
namespace {

/// Only then nothing leaves the devices: servers on hosts of their own are where the parameters are.
bool holds_parameters_itself(const ServerExchange& exchange, const Machine& machine) {
  return exchange.sums_on_devices() && node_count(machine) == 1 &&
         machine.hosts[machine.host_of(exchange.servers.front())].device_count > 0;
}

}  // namespace

std::uint32_t node_count(const Machine& machine) {
  return static_cast<std::uint32_t>(std::count_if(machine.hosts.begin(), machine.hosts.end(),
                                                  [](const Host& host) { return host.device_count > 0; }));
}

ServerMessages::ServerMessages(const ServerExchange& exchange, const TrainingGraph& graph,
                               const Machine& machine, const CostModel& cost, Plan& plan)
    : exchange_(exchange),
      graph_(graph),
      machine_(machine),
      cost_(cost),
      plan_(plan),
      alone_(holds_parameters_itself(exchange, machine)),
      messages_(shard(graph, exchange.sharding, static_cast<std::uint32_t>(exchange.servers.size()),
                      exchange.overlap, exchange.bucket_bytes)),
      compressor_(exchange.compression, graph, 1) {
  const std::map<std::uint32_t, std::vector<std::uint32_t>> nodes = nodes_by_size();
  if (exchange.local_aggregation == LocalAggregation::owner)
    for (const auto& [devices, hosts] : nodes) choose_owners(devices);
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    if (!alone_) with_servers_.push_back(add_exchange(m));
    for (const auto& [devices, hosts] : nodes) {
      std::vector<ServerWays>& ways = in_nodes_[devices];
      if (exchange.sums_on_hosts())
        ways.push_back(add_to_host(m, devices, hosts));
      else if (devices > 1 && exchange.local_aggregation == LocalAggregation::owner)
        ways.push_back(add_to_owner(m, devices, hosts));
      else if (devices > 1 && exchange.local_aggregation == LocalAggregation::ring)
        ways.push_back(add_ring(m, devices, hosts));
    }
  }
}

bool ServerMessages::is_service() const {
  return exchange_.one_by_one() && (!messages_.empty() || exchange_.mode != ServerMode::sync);
}

bool ServerMessages::owns(std::uint32_t devices, std::uint32_t place, std::size_t m) const {
  return exchange_.local_aggregation != LocalAggregation::owner || owners_.at(devices)[m] == place;
}

bool ServerMessages::is_target(std::size_t m, std::uint32_t server) const {
  return messages_[m].server == PushMessage::every_server || messages_[m].server == server;
}

double ServerMessages::target_count(std::size_t m) const {
  return messages_[m].server == PushMessage::every_server ? static_cast<double>(exchange_.servers.size())
                                                          : 1.0;
}

double ServerMessages::added_bytes(std::size_t m) const {
  const double bytes = messages_[m].bytes;
  return exchange_.compression.kind == Compression::Kind::top_k ? compressor_.sent_bytes(bytes) : bytes;
}

double ServerMessages::sender_count() const {
  return exchange_.local_aggregation == LocalAggregation::none ? static_cast<double>(machine_.devices.size())
                                                               : node_count(machine_);
}

/// The device that owns the fewest bytes so far.
void ServerMessages::choose_owners(std::uint32_t devices) {
  std::vector<double> load(devices, 0.0);
  for (const PushMessage& message : messages_) {
    const auto lightest = std::min_element(load.begin(), load.end());
    owners_[devices].push_back(static_cast<std::uint32_t>(lightest - load.begin()));
    *lightest += message.bytes;
  }
}

std::map<std::uint32_t, std::vector<std::uint32_t>> ServerMessages::nodes_by_size() const {
  std::map<std::uint32_t, std::vector<std::uint32_t>> result;
  for (std::uint32_t h = 0; h < machine_.hosts.size(); ++h)
    if (machine_.hosts[h].device_count > 0) result[machine_.hosts[h].device_count].push_back(h);
  return result;
}

ServerMessages::Clients ServerMessages::clients(std::size_t m) const {
  Clients result;
  const auto add_client = [&](EndpointId endpoint, double part) {
    result.endpoints.push_back(endpoint);
    result.parts.push_back(part);
  };
  for (std::uint32_t h = 0; h < machine_.hosts.size(); ++h) {
    const Host& host = machine_.hosts[h];
    if (host.device_count == 0) continue;
    if (exchange_.sums_on_hosts()) add_client(machine_.host_endpoint(h), 1);
    for (std::uint32_t d = 0; !exchange_.sums_on_hosts() && d < host.device_count; ++d)
      if (owns(host.device_count, d, m))
        add_client(host.first_device + d,
                   exchange_.local_aggregation == LocalAggregation::ring ? 1.0 / host.device_count : 1.0);
  }
  return result;
}

CommId ServerMessages::add(std::string name, std::uint32_t pattern, double bytes, double overhead_s) {
  plan_.communications.push_back({std::move(name), pattern, bytes, Fidelity::automatic, overhead_s});
  return static_cast<CommId>(plan_.communications.size() - 1);
}

/// A pattern of one round, and its way back; equal ones once.
std::pair<std::uint32_t, std::uint32_t> ServerMessages::add_patterns(
    std::vector<std::vector<EndpointId>> groups, Round push, bool in_order) {
  const auto first = static_cast<std::uint32_t>(plan_.patterns.size());
  const auto [known, fresh] = patterns_.try_emplace({groups, push.pairs}, first);
  if (fresh) {
    Round pull = push.reversed();
    plan_.patterns.push_back({groups, {std::move(push)}, in_order});
    plan_.patterns.push_back({std::move(groups), {std::move(pull)}, in_order});
  }
  return {known->second, known->second + 1};
}

/// From the clients, which are the group's first members, to the members at `targets`, an equal part to each.
/// Nobody sends to himself. A service tells messages apart, so that they are listed.
Round ServerMessages::push_round(const Clients& clients, const std::vector<std::uint32_t>& targets) const {
  const double share = 1.0 / static_cast<double>(targets.size());
  const auto count = static_cast<std::uint32_t>(clients.endpoints.size());
  Round push;
  if (targets.size() > 1 && !is_service()) {
    AllToAll& messages = push.all_to_all.emplace();
    for (std::uint32_t c = 0; c < count; ++c) messages.senders.push_back({c, clients.parts[c]});
    for (const std::uint32_t target : targets) messages.receivers.push_back({target, share});
    return push;
  }
  for (const std::uint32_t target : targets)
    for (std::uint32_t c = 0; c < count; ++c) {
      if (c == target) continue;
      push.pairs.emplace_back(c, target);
      push.fractions.push_back(clients.parts[c] * share);
    }
  return push;
}

/// Clients to the message's servers.
ServerWays ServerMessages::add_exchange(std::size_t m) {
  const Clients from = clients(m);
  std::vector<EndpointId> group = from.endpoints;
  std::unordered_map<EndpointId, std::uint32_t> position_of;
  for (std::uint32_t c = 0; c < group.size(); ++c) position_of.emplace(group[c], c);
  std::vector<std::uint32_t> targets;
  for (std::uint32_t s = 0; s < exchange_.servers.size(); ++s) {
    if (!is_target(m, s)) continue;
    const auto [known, fresh] =
        position_of.emplace(exchange_.servers[s], static_cast<std::uint32_t>(group.size()));
    if (fresh) group.push_back(exchange_.servers[s]);
    targets.push_back(known->second);
  }
  const auto [in, back] =
      add_patterns({std::move(group)}, push_round(from, targets), machine_.transport.in_order);
  const double bytes = messages_[m].bytes;
  const double call_s = machine_.transport.call_s_of(bytes * from.parts[0] / target_count(m));
  const double owner_s = exchange_.local_aggregation == LocalAggregation::owner
                             ? sum_s(m, machine_.devices[from.endpoints[0]])
                             : 0;
  return {add(fmt::format("push {} to servers", m), in, compressor_.sent_bytes(bytes), call_s + owner_s),
          add(fmt::format("pull {} from servers", m), back, bytes, call_s)};
}

/// Devices of a node to their host's memory.
ServerWays ServerMessages::add_to_host(std::size_t m, std::uint32_t devices,
                                       const std::vector<std::uint32_t>& hosts) {
  std::vector<std::vector<EndpointId>> groups;
  for (const std::uint32_t h : hosts) {
    groups.push_back({machine_.host_endpoint(h)});
    for (std::uint32_t d = 0; d < devices; ++d) groups.back().push_back(machine_.hosts[h].first_device + d);
  }
  Round push{{}, {1.0}, 1};
  for (std::uint32_t d = 1; d <= devices; ++d) push.pairs.emplace_back(d, 0);
  const auto [in, back] = add_patterns(std::move(groups), std::move(push));
  const double bytes = messages_[m].bytes;
  return {add(fmt::format("push {} to node", m), in, compressor_.sent_bytes(bytes), 0),
          add(fmt::format("pull {} from node", m), back, bytes, 0)};
}

/// The other devices of a node to the message's owner.
ServerWays ServerMessages::add_to_owner(std::size_t m, std::uint32_t devices,
                                        const std::vector<std::uint32_t>& hosts) {
  const std::uint32_t owner = owners_.at(devices)[m];
  std::vector<std::vector<EndpointId>> groups;
  for (const std::uint32_t h : hosts) {
    groups.emplace_back();
    for (std::uint32_t d = 0; d < devices; ++d) groups.back().push_back(machine_.hosts[h].first_device + d);
  }
  Round push{{}, {1.0}, 1};
  for (std::uint32_t d = 0; d < devices; ++d)
    if (d != owner) push.pairs.emplace_back(d, owner);
  const Device& device = machine_.devices[groups[0][owner]];
  const auto [in, back] = add_patterns(std::move(groups), std::move(push));
  return {add(fmt::format("gradients {} to owner", m), in, messages_[m].bytes, 0),
          add(fmt::format("parameters {} from owner", m), back, messages_[m].bytes,
              alone_ ? sum_s(m, device) + update_s(m, device) : 0)};
}

ServerWays ServerMessages::add_ring(std::size_t m, std::uint32_t devices,
                                    const std::vector<std::uint32_t>& hosts) {
  const double bytes = messages_[m].bytes;
  const auto of_node = [&](bool gather) {
    Pattern all;
    for (const std::uint32_t h : hosts) {
      std::vector<EndpointId> ranks;
      for (std::uint32_t d = 0; d < devices; ++d) ranks.push_back(machine_.hosts[h].first_device + d);
      Pattern one = (gather ? all_gather_pattern : reduce_scatter_pattern)(AllReduceAlgorithm::ring, ranks,
                                                                           machine_, bytes, RingOrder::mesh);
      if (all.rounds.empty()) all.rounds = one.rounds;
      all.groups.push_back(one.groups[0]);
    }
    return all;
  };
  const auto first = static_cast<std::uint32_t>(plan_.patterns.size());
  const auto [known, fresh] = rings_.try_emplace(devices, first, first + 1);
  if (fresh) {
    plan_.patterns.push_back(of_node(false));
    plan_.patterns.push_back(of_node(true));
  }
  const auto [scatter, gather] = known->second;
  const double start_s = machine_.collective_overhead_s;
  return {add(fmt::format("reduce-scatter {} in nodes", m), scatter, bytes, start_s),
          add(fmt::format("all-gather {} in nodes", m), gather, bytes, start_s)};
}

/// What an owner takes to add up a node's gradients.
double ServerMessages::sum_s(std::size_t m, const Device& device) const {
  const std::uint32_t devices = machine_.hosts[device.host].device_count;
  Work work;
  work.kind = KernelKind::elementwise;
  work.flops_fixed = (devices - 1) * messages_[m].bytes / 4;
  work.bytes_fixed = (devices + 1) * messages_[m].bytes;
  return devices < 2 ? 0 : cost_.time_s(work, 1, machine_.device_types[device.type]) / device.speed;
}

/// What it takes to update the message's parameters.
double ServerMessages::update_s(std::size_t m, const Device& device) const {
  double all_bytes = 0, all_s = 0;
  for (const PushMessage& message : messages_) all_bytes += message.bytes;
  for (const Operation& operation : graph_.operations)
    if (operation.phase == Phase::update)
      all_s += cost_.time_s(operation.work, 1, machine_.device_types[device.type]) / device.speed;
  return all_s * messages_[m].bytes / all_bytes;
}

}  // namespace convoy::lowering
