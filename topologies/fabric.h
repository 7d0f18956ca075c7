// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/yaml_map.h"
#include "topologies/link_table.h"

namespace convoy {

/// What the keys `bandwidth`, `latency`, `nics`, `efficiency` and `message_overhead` of a fabric say.
struct NicSpec {
  double bandwidth_Bps = 0;  ///< of one NIC in one direction, as payload can use it (times the efficiency)
  double latency_s = 0;      ///< one way between two hosts of one switch
  double message_overhead_s = 0;  ///< added to the latency of each message
  double efficiency = 1;          ///< share of a nominal bandwidth that payload can use
  std::uint32_t count = 1;        ///< NICs of a host
};
NicSpec read_nic(YamlMap& map);

/// A host as the fabric sees it. Hosts may have NICs of different speed.
struct FabricHost {
  std::string name;
  NicSpec nic;
};

struct FabricPort {
  std::uint32_t host = 0, nic = 0;
};

/// The ways through a fabric that has been built.
class FabricRoutes {
 public:
  virtual ~FabricRoutes() = default;
  /// Appends the links from one host to another one.
  virtual void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const = 0;
};

/// What joins hosts (`fabric:`). Immutable.
class Fabric {
 public:
  explicit Fabric(const NicSpec& nic) : nic_(nic) {}
  virtual ~Fabric() = default;
  const NicSpec& nic() const { return nic_; }
  /// Whether hosts may have NICs of their own speed, so that servers of several providers' fabrics can be
  /// mixed.
  virtual bool own_nics() const { return false; }
  /// Adds the fabric's links. @throws InputError: too many hosts for it, no route.
  virtual std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                                    LinkTable& links) const = 0;
  /// One line for people: "switch, 1.25 GB/s, 25.0 us".
  virtual std::string text() const = 0;

 private:
  NicSpec nic_;
};

/// Reads a `fabric:` mapping with the registry's reader of its `kind`. @throws InputError
std::shared_ptr<const Fabric> read_fabric(const YamlNode& node, const std::string& path);

/// A row of the registry: error messages, `convoy show` and documentation read it.
struct FabricEntry {
  std::string_view kind;
  std::string_view summary;
  std::string_view keys;
  std::shared_ptr<const Fabric> (*read)(YamlMap& map);
};
const std::vector<FabricEntry>& fabric_registry();

/// The NICs of all hosts as links, "n0.nic" or "n0.nic2", each with half of the latency and of the message
/// overhead: up is towards the switch.
class NicLinks {
 public:
  NicLinks(std::span<const FabricHost> hosts, LinkTable& links);
  LinkId up(FabricPort port) const { return first_[port.host] + 2 * port.nic; }
  LinkId down(FabricPort port) const { return up(port) + 1; }

 private:
  std::vector<LinkId> first_;
};

/// "1.25 GB/s, 25.0 us", for Fabric::text.
std::string nic_text(const NicSpec& nic);

}  // namespace convoy
