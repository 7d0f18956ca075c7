// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/device.h"
#include "topologies/link_kind.h"
#include "topologies/transport.h"

namespace convoy::inline topologies {

using LinkId = std::uint32_t;
/// Something that sends and receives: device d is endpoint d; the host memory of host h is endpoint
/// devices.size() + h.
using EndpointId = std::uint32_t;

/// One direction of a cable, a NIC port, a PCIe lane bundle, or a shared medium.
struct Link {
  enum class Direction : std::uint8_t { up, down, both };
  static constexpr std::uint32_t no_host = 0xffffffff;

  std::string name;          ///< "n0.nic.up", "n0.gpu3.pcie.down", "leaf2.spine1.up", "air"
  double bandwidth_Bps = 0;  ///< what payload can use: the nominal rate times its protocol efficiency
  double latency_s = 0;
  std::uint32_t port = 0;  ///< both directions of one cable have the same port number
  LinkKind kind = LinkKind::network;
  Direction direction = Direction::both;
  std::uint32_t host = no_host;  ///< that it is in, or whose NIC it is: index into Machine::hosts
  bool operator==(const Link&) const = default;
};

struct Route {
  std::vector<LinkId> links;
  double latency_s = 0;  ///< of the whole way (sum of the links')
  /// The two ends of the transport's connection that the message takes, devices or whole hosts, and what it
  /// carries at most (Transport::pair_bandwidth_Bps); messages with equal `connection` share one. Infinite:
  /// no connection limits it.
  std::pair<EndpointId, EndpointId> connection{};
  double connection_Bps = std::numeric_limits<double>::infinity();
};

/// What a host adds to its devices.
struct HostType {
  std::string server;                     ///< catalogue or inline name
  std::optional<double> price_usd_per_h;  ///< nothing: not known; 0: it costs nothing
  std::string price_origin;  ///< "on demand, us-east-1, 2025-06-23 to 2026-07-20"; "" where the user gave it
  /// Rate at which the host's CPUs add gradients into a parameter (bytes of gradient per second); infinite
  /// where the catalogue gives none.
  double reduce_bandwidth_Bps = std::numeric_limits<double>::infinity();
  double host_power_w = 0;  ///< of the host without its devices
  std::uint32_t vcpus = 0;  ///< hardware threads of its CPUs that the renter gets; 0 where not told
  double memory_bytes = 0;  ///< of the host; 0 where not told
  bool staged = false;      ///< messages between its devices go through its memory
  double disk_bytes = 0;    ///< of its local disks; 0: it has none, or they are not told
  /// Time in which its CPUs issue an operation to a device, relative to the typical host; 0: not told, as the
  /// typical one. Machine::device_types have it in their own issue_factor.
  double issue_factor = 0;
  bool operator==(const HostType&) const = default;
};

struct Host {
  std::string name;                                  ///< "n0"
  std::uint32_t type = 0;                            ///< index into Machine::host_types
  std::uint32_t first_device = 0, device_count = 0;  ///< 0 devices: a dedicated server
  bool operator==(const Host&) const = default;
};

struct Device {
  std::string name;        ///< "n0.gpu3" ("n0" where the host has one device)
  std::uint32_t type = 0;  ///< index into Machine::device_types
  std::uint32_t host = 0;
  double speed = 1.0;  ///< compute times are divided by it
  bool operator==(const Device&) const = default;
};

/// Finds the way between two endpoints on demand: nothing of size endpoints^2 is kept.
class Router {
 public:
  virtual ~Router() = default;
  /// Replaces `route`; an empty route when from == to or when both are in one place. @throws InputError: no
  /// route.
  virtual void route(EndpointId from, EndpointId to, Route& route) const = 0;
  /// Whether the way from `endpoint` to an endpoint of any other host begins with the links `out`, whoever
  /// that is, the way from there ends with the links `in`, and two such halves are the whole way (a switch
  /// joins them), with the same `connection_Bps` everywhere. Replaces both; `false`: nothing is known.
  virtual bool halves(EndpointId /*endpoint*/, std::vector<LinkId>& /*out*/,
                      std::vector<LinkId>& /*in*/) const {
    return false;
  }
};

/// Devices, hosts and links, with the routes between them. Values; the router is shared and immutable.
struct Machine {
  std::string name;
  std::vector<DeviceType> device_types;
  std::vector<HostType> host_types;
  std::vector<Host> hosts;  ///< the cluster's nodes, then dedicated servers
  std::vector<Device> devices;
  std::vector<Link> links;
  std::uint32_t port_count = 0;  ///< Link::port is below it; every port has at least one link
  std::shared_ptr<const Router> router;
  Transport transport = ideal_transport();  ///< what software adds to the links; `links` have its part of it
  /// Before a collective's first message: launch and rendezvous (`communication: {overhead}` of the cluster,
  /// and the transport's).
  double collective_overhead_s = 0;
  /// Standard deviation, relative to its mean, of a device's time for the same step from one step to the
  /// next; devices vary each on its own (`step_jitter` of servers and clusters). Synchronous steps wait for
  /// the slowest.
  double step_jitter = 0;
  /// Share of a device's processors that are a collective's while one is under way on it: a channel of the
  /// transport is a block of threads that fills a multiprocessor; at least seven of them, and never more than
  /// Proteus measured (build_machine.cpp). 0 where either number is 0.
  double processors_taken(const DeviceType& type) const;

  std::string network_model;  ///< for the manifest and README: "max-min, alpha-beta"

  /// Everything is equal, and both have one router.
  bool operator==(const Machine&) const = default;

  EndpointId host_endpoint(std::uint32_t host) const {
    return static_cast<EndpointId>(devices.size()) + host;
  }
  std::size_t endpoint_count() const { return devices.size() + hosts.size(); }
  std::uint32_t host_of(EndpointId e) const {
    return e < devices.size() ? devices[e].host : e - static_cast<std::uint32_t>(devices.size());
  }
  const std::string& endpoint_name(EndpointId e) const {
    return e < devices.size() ? devices[e].name : hosts[e - devices.size()].name;
  }
};

/// Name of the port that a link belongs to: the link's without its direction ("n0.nic.up" -> "n0.nic", "air"
/// -> "air").
std::string port_name(const Link& link);

}  // namespace convoy::topologies
