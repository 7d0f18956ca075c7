// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "topologies/fabric.h"
#include "topologies/interior.h"
#include "topologies/machine.h"
#include "topologies/sources.h"

namespace convoy::inline topologies {

/// Where a server does not say its own, between what is known of hosts with EPYC of the second generation (6
/// to 9 GB/s, workstation-8-rtx-3090) and with Xeon, where PCIe switches limit before it (eight RTX 2080 Ti
/// behind four switches pass 4.8 to 5.7 GB/s each, together 40 at least: lambdal/lambda-tensorflow-benchmark,
/// logs).
constexpr double default_staging_Bps = 16e9;
/// Two RTX 2080 Ti on PCIe 3 x16 (12 GB/s): NCCL through shared memory 11.09 GB/s one way, 4.00 GB/s where
/// both send (results/published/transports.csv), four cards on PCIe 3 4.88 (NVIDIA/nccl, issue 445): 8.0
/// to 9.8 GB/s of both directions, of 12.
constexpr double default_staging_lane_share = 0.8;

/// A kind of server, from topologies/catalog/servers/NAME.yaml or inline.
struct ServerSpec {
  std::string title;  ///< for people; "" inline
  HostType host;      ///< host.server is its name
  /// Of the same machine without devices, for dedicated hosts; nothing: not known.
  std::optional<double> bare_price_usd_per_h;
  double copy_bandwidth_Bps = std::numeric_limits<double>::infinity();  ///< of copies through host memory
  /// Whether its devices reach each other over PCIe; otherwise messages between them are written to the
  /// host's memory by one and read from there by the other (staged).
  bool peer_to_peer = true;
  /// Of all staged messages of the host together, and the share of its PCIe lanes that a device's staged
  /// messages of both directions have together.
  double staging_bandwidth_Bps = default_staging_Bps, staging_lane_share = default_staging_lane_share;
  std::vector<std::pair<DeviceType, std::uint32_t>> devices;  ///< type and count, in order
  /// Devices of a server in a row, so many to a board, that share its power: where at least two of a board
  /// are used, they run at `board_speed`. 1: each device has a board of its own.
  std::uint32_t board_devices = 1;
  double board_speed = 1.0;
  double step_jitter = 0;                    ///< Machine::step_jitter of a cluster of these servers
  std::shared_ptr<const Interior> interior;  ///< nullptr where the server has one device and names none
  std::shared_ptr<const Fabric> fabric;      ///< its provider's; nullptr where none is named
  Sources sources;                           ///< of its numbers

  std::uint32_t device_count() const;
};

/// Takes `step_jitter` of a server or cluster (Machine::step_jitter), 0 where absent. @throws InputError
double read_step_jitter(YamlMap& map);

/// Finds a device type by name: those of the experiment, then the catalogue. @throws InputError at the
/// position
using DeviceLookup = std::function<DeviceType(const std::string& name, const SourcePos& pos)>;

/// Reads a server's mapping. @throws InputError
ServerSpec read_server(const YamlNode& node, const std::string& path, const std::string& name,
                       const DeviceLookup& devices);

}  // namespace convoy::topologies
