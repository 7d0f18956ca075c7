// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/yaml_node.h"
#include "topologies/fabric.h"
#include "topologies/machine.h"
#include "topologies/server.h"

namespace convoy::inline topologies {

/// Equal hosts: an entry of `nodes`.
struct NodeGroup {
  std::string name;  ///< hosts are name0, name1, ...
  std::uint32_t count = 0;
  std::uint32_t server = 0;  ///< index into ClusterSpec::servers
  double speed = 1.0;        ///< of every device
  double speed_spread = 0;   ///< each device's speed is drawn from speed [1 - spread, 1 + spread]
  std::optional<double> nic_bandwidth_Bps;  ///< nominal, where it is not the fabric's
  double nic_spread = 0;                    ///< each host's is drawn from bandwidth [1 - spread, 1 + spread]
};

/// `dedicated:` of a cluster: what hosts of dedicated parameter servers are, where they are not like the
/// first node without its devices.
struct DedicatedHosts {
  std::shared_ptr<const ServerSpec> server;  ///< nullptr: the first node's
  std::optional<double> nic_bandwidth_Bps;   ///< nominal
  std::optional<double> price_usd_per_h;
};

/// A `cluster:` as it was read (docs/clusters.md). Plain values; catalogue entries are resolved.
struct ClusterSpec {
  std::string name;
  std::string title;  ///< for people; "" where none is given
  std::vector<ServerSpec> servers;
  std::vector<NodeGroup> groups;
  std::uint32_t devices_per_node = 0;    ///< use only the first so many devices of a host; 0: all
  std::shared_ptr<const Fabric> fabric;  ///< nullptr: each server's own
  std::uint64_t speed_seed = 1;          ///< of all that is drawn
  double collective_overhead_s = 0;
  DedicatedHosts dedicated;
  std::optional<double> step_jitter;  ///< where it is not the servers' (the greatest among them)
  Sources sources;                    ///< of its own numbers, not its servers'
  SourcePos pos;

  std::uint32_t node_count() const;
  std::uint32_t devices_of(const NodeGroup& group) const;  ///< that each of its hosts uses
  std::uint32_t device_count() const;
  /// What its fabric speaks, or its servers' own fabrics (protocol_between).
  SpokenProtocol protocol() const;
};

/// What hosts of these servers speak over their own fabrics: tcp where these differ; where one of them does
/// not tell, or there is none, ideal if every device is exact, so that closed forms hold, else tcp, unstated.
SpokenProtocol protocol_between(std::span<const ServerSpec* const> servers);

/// "the network of aws-p3.2xlarge sustains 2.5 Gbit/s, ... and gives 10 Gbit/s for a while", of all servers whose own
/// fabrics say so (NicSpec::burst_Bps) with their sustained bandwidth below; else "".
std::string burst_text(const ClusterSpec& cluster);

/// Reads a `cluster:` of an experiment: {server, nodes: N, ...}, a catalogue cluster's name, or inline with a
/// list of nodes. @throws InputError
ClusterSpec read_cluster(const YamlNode& node);

/// Builds the machine: hosts in the order of `nodes`, then hosts ps0, ps1, ... without devices, which are
/// what `dedicated` says, and else like the first node, its NIC included. @throws InputError: no fabric, no
/// route, a fabric too small for the hosts.
Machine build_machine(const ClusterSpec& cluster, std::uint32_t dedicated_hosts,
                      const Transport& transport = ideal_transport());

}  // namespace convoy::topologies
