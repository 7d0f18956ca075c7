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

namespace convoy {

/// A kind of server, from topologies/catalog/servers/NAME.yaml or inline.
struct ServerSpec {
  std::string title;                ///< for people; "" inline
  HostType host;                    ///< host.server is its name
  double bare_price_usd_per_h = 0;  ///< of the same machine without devices, for dedicated hosts
  double copy_bandwidth_Bps = std::numeric_limits<double>::infinity();  ///< of copies through host memory
  std::vector<std::pair<DeviceType, std::uint32_t>> devices;            ///< type and count, in order
  /// Devices of a server in a row, so many to a board, that share its power: where at least two of a board
  /// are used, they run at `board_speed`. 1: each device has a board of its own.
  std::uint32_t board_devices = 1;
  double board_speed = 1.0;
  double step_jitter = 0;                    ///< Machine::step_jitter of a cluster of these servers
  std::shared_ptr<const Interior> interior;  ///< nullptr where the server has one device and names none
  std::shared_ptr<const Fabric> fabric;      ///< its provider's; nullptr where none is named

  std::uint32_t device_count() const;
};

/// Takes `sources: {key: citation}` of a server or cluster: citations are for people and for the test of the
/// catalogue, the reader only holds them to be texts. @throws InputError
void read_sources(YamlMap& map);

/// Takes `step_jitter` of a server or cluster (Machine::step_jitter), 0 where absent. @throws InputError
double read_step_jitter(YamlMap& map);

/// Finds a device type by name: those of the experiment, then the catalogue. @throws InputError at the
/// position
using DeviceLookup = std::function<DeviceType(const std::string& name, const SourcePos& pos)>;

/// Reads a server's mapping. @throws InputError
ServerSpec read_server(const YamlNode& node, const std::string& path, const std::string& name,
                       const DeviceLookup& devices);

}  // namespace convoy
