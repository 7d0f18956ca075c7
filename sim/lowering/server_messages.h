// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/lowering/server_exchange.h"
#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Hosts with devices.
std::uint32_t node_count(const Machine& machine);

/// The two directions of a message: gradients to the servers, and parameters back.
struct ServerWays {
  CommId in = 0, back = 0;
};

/// What replicas, the hosts of their nodes and servers send each other: the messages into which the gradients
/// are split, and the patterns and communications of both directions, which this class appends to a plan.
class ServerMessages {
 public:
  ServerMessages(const ServerExchange& exchange, const TrainingGraph& graph, const Machine& machine,
                 const CostModel& cost, Plan& plan);

  const std::vector<PushMessage>& all() const { return messages_; }
  std::size_t size() const { return messages_.size(); }
  const Compressor& compressor() const { return compressor_; }
  /// Whether the devices of the only node hold the parameters themselves, so that nothing is sent to servers.
  bool is_alone() const { return alone_; }
  /// Whether servers answer by a rule. Without parameters there is nothing to wait for.
  bool is_service() const;

  const ServerWays& with_servers(std::size_t m) const { return with_servers_[m]; }
  /// The messages within nodes of so many devices. @pre the exchange has a local aggregation; if that is on
  /// devices, a node has more than one
  const ServerWays& in_node(std::uint32_t devices, std::size_t m) const { return in_nodes_.at(devices)[m]; }
  /// The same of all messages, by devices of the node.
  const std::map<std::uint32_t, std::vector<ServerWays>>& in_nodes() const { return in_nodes_; }
  /// Whether the device at `place` in a node of so many pushes the message, or its part of it.
  bool owns(std::uint32_t devices, std::uint32_t place, std::size_t m) const;

  /// Whether the server of this index has the message, or a part of it; every_server stands for any.
  bool is_target(std::size_t m, std::uint32_t server) const;
  double target_count(std::size_t m) const;
  /// What the CPUs of a host add up of one push of the message: gradients, or pairs of index and gradient.
  double added_bytes(std::size_t m) const;
  /// Who pushes to the servers: devices, or nodes.
  double sender_count() const;

 private:
  /// Endpoints that push, each with its part of a message.
  struct Clients {
    std::vector<EndpointId> endpoints;
    std::vector<double> parts;
  };
  void choose_owners(std::uint32_t devices);
  Clients clients(std::size_t m) const;
  std::map<std::uint32_t, std::vector<std::uint32_t>> nodes_by_size() const;
  CommId add(std::string name, std::uint32_t pattern, double bytes, double overhead_s);
  std::pair<std::uint32_t, std::uint32_t> add_patterns(std::vector<std::vector<EndpointId>> groups,
                                                       Round push, bool in_order = false);
  Round push_round(const Clients& clients, const std::vector<std::uint32_t>& targets) const;
  ServerWays add_exchange(std::size_t m);
  ServerWays add_to_host(std::size_t m, std::uint32_t devices, const std::vector<std::uint32_t>& hosts);
  ServerWays add_to_owner(std::size_t m, std::uint32_t devices, const std::vector<std::uint32_t>& hosts);
  ServerWays add_ring(std::size_t m, std::uint32_t devices, const std::vector<std::uint32_t>& hosts);
  double sum_s(std::size_t m, const Device& device) const;
  double update_s(std::size_t m, const Device& device) const;

  const ServerExchange& exchange_;
  const TrainingGraph& graph_;
  const Machine& machine_;
  const CostModel& cost_;
  Plan& plan_;
  bool alone_;
  std::vector<PushMessage> messages_;
  Compressor compressor_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> owners_;  ///< by devices of the node, by message: place
  std::map<
      std::pair<std::vector<std::vector<EndpointId>>, std::vector<std::pair<std::uint32_t, std::uint32_t>>>,
      std::uint32_t>
      patterns_;  ///< by groups and pairs (none of an all-to-all): equal ones once
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> rings_;  ///< by devices of the node
  std::map<std::uint32_t, std::vector<ServerWays>> in_nodes_;               ///< the same, by message
  std::vector<ServerWays> with_servers_;                                    ///< by message
};

}  // namespace convoy::lowering
