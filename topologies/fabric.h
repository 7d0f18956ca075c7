// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"
#include "topologies/link_table.h"
#include "topologies/transport.h"

namespace convoy::inline topologies {

/// What the keys `bandwidth`, `burst`, `latency`, `nics`, `efficiency`, `message_overhead`, `protocol`, `streams`,
/// `stream_bandwidth`, `handshake`, `tree_chunk` and `simple_only` of a fabric say.
struct NicSpec {
  double bandwidth_Bps = 0;       ///< of one NIC (or cable) in one direction, as payload can use it
  double latency_s = 0;           ///< one way between two hosts of one switch (or along one cable)
  double message_overhead_s = 0;  ///< added to the latency of each message, whatever its way
  double efficiency = 1;  ///< share of a nominal bandwidth that payload can use; bandwidth_Bps has it already
  double burst_Bps =
      0;  ///< nominal, what a NIC gets for a while; it is told and never simulated; 0: not known
  std::uint32_t count = 1;           ///< NICs of a host
  std::optional<Protocol> protocol;  ///< nothing: not told (ClusterSpec::protocol)
  std::uint32_t streams = 0;  ///< Transport::streams here, where they are not the library's own; 0: they are
  /// What the network gives one connection in one direction, whatever the library could do.
  double stream_bandwidth_Bps = std::numeric_limits<double>::infinity();
  double handshake_s = 0;       ///< Transport::handshake_s here
  double tree_chunk_bytes = 0;  ///< Transport::tree_chunk_bytes here
  bool simple_only = false;     ///< Transport::simple_only here
};
/// Keys of cables whose rates are said elsewhere: `efficiency` and `message_overhead`.
Keys<NicSpec> payload_keys();
/// `protocol` and the keys that go with one: `streams`, `stream_bandwidth`, `handshake`, `tree_chunk` and
/// `simple_only`.
Keys<NicSpec> protocol_keys();
/// Keys of equal cables: all of NicSpec's but `nics`, which only fabrics with switches have.
Keys<NicSpec> cable_keys();
/// All keys of NicSpec, for fabrics with switches.
Keys<NicSpec> nic_keys();
/// What the mapping says by cable_keys(). @throws InputError
NicSpec read_cable(YamlMap& map);
/// What the mapping says by nic_keys(). @throws InputError
NicSpec read_nic(YamlMap& map);

/// A host as the fabric sees it. Hosts may have NICs of different speed.
struct FabricHost {
  std::string name;  ///< of its links, "n0"
  NicSpec nic;       ///< its own, or the fabric's
  bool own_rate =
      false;  ///< nic.bandwidth_Bps is this host's (`nic_bandwidth`, `nic_spread`), not the fabric's
  std::uint32_t index = 0;  ///< into Machine::hosts
};

/// Where a message enters or leaves a fabric.
struct FabricPort {
  std::uint32_t host = 0;  ///< index into the hosts of Fabric::build
  std::uint32_t nic = 0;   ///< of the host, from 0
};

/// The ways through a fabric that has been built.
class FabricRoutes {
 public:
  virtual ~FabricRoutes() = default;
  /// Appends the links from one host to another one.
  virtual void append(FabricPort from, FabricPort to, std::vector<LinkId>& links) const = 0;
  /// Where every way is a way out of one port and a way into the other, whoever the other is: appends both of
  /// `port`, and returns true.
  virtual bool append_halves(FabricPort /*port*/, std::vector<LinkId>& /*out*/,
                             std::vector<LinkId>& /*in*/) const {
    return false;
  }
};

/// What joins hosts (`fabric:`). Immutable.
class Fabric {
 public:
  /// @param map the mapping `fabric:`, whose place errors name
  Fabric(const YamlMap& map, const NicSpec& nic) : nic_(nic), pos_(map.pos()), path_(map.path()) {}
  virtual ~Fabric() = default;
  const NicSpec& nic() const { return nic_; }  ///< of the hosts that have none of their own
  /// Whether a host's NIC may have a bandwidth of its own (`nic_bandwidth`).
  virtual bool has_nics() const { return true; }
  /// Whether hosts that bring different fabrics of this kind can be joined by it, each with its own NIC.
  virtual bool mixes() const { return false; }
  /// Adds the fabric's links. @throws InputError: too many hosts for it, no route.
  virtual std::unique_ptr<const FabricRoutes> build(std::span<const FabricHost> hosts,
                                                    LinkTable& links) const = 0;
  /// One line for people: "switch, 1.25 GB/s, 25.0 us".
  virtual std::string text() const = 0;

 protected:
  [[noreturn]] void fail(const std::string& message) const;  ///< at the fabric's mapping

 private:
  NicSpec nic_;
  SourcePos pos_;
  std::string path_;
};

/// Reads a `fabric:` mapping with the registry's reader of its `kind`. @throws InputError
std::shared_ptr<const Fabric> read_fabric(const YamlNode& node, const std::string& path);

/// A row of the registry: error messages, `convoy show` and documentation read it.
struct FabricEntry {
  std::string_view kind;      ///< what `fabric.kind` calls it
  std::string_view summary;   ///< one line, without a full stop
  std::vector<KeyText> keys;  ///< of the table that `read` goes by
  /// Reads its keys from the mapping, all but `kind`. @throws InputError
  std::shared_ptr<const Fabric> (*read)(YamlMap& map);
};
/// All kinds of fabrics.
const std::vector<FabricEntry>& fabric_registry();

/// The NICs of all hosts as links, "n0.nic" or "n0.nic2", each with half of the latency and of the message
/// overhead: up is towards the switch.
class NicLinks {
 public:
  /// Adds the links of all NICs to `links`.
  NicLinks(std::span<const FabricHost> hosts, LinkTable& links);
  LinkId up(FabricPort port) const { return first_[port.host] + 2 * port.nic; }  ///< out of the host
  LinkId down(FabricPort port) const { return up(port) + 1; }                    ///< into the host

 private:
  std::vector<LinkId> first_;
};

/// What `message_overhead` costs where hosts have no NIC link that could carry it: a link "n0.stack" a host
/// and direction, as fast as all of the host's cables together, so that it never limits. None where the
/// overhead is 0.
class StackLinks {
 public:
  /// @param capacity_Bps of each host: the sum of its cables
  StackLinks(std::span<const FabricHost> hosts, std::span<const double> capacity_Bps,
             double message_overhead_s, LinkTable& links);
  /// Appends the link out of the host, if there is one.
  void append_up(std::uint32_t host, std::vector<LinkId>& links) const {
    if (there_) links.push_back(first_ + 2 * host);
  }
  /// Appends the link into the host, if there is one.
  void append_down(std::uint32_t host, std::vector<LinkId>& links) const {
    if (there_) links.push_back(first_ + 2 * host + 1);
  }

 private:
  bool there_ = false;
  LinkId first_ = 0;
};

/// "1.25 GB/s, 25.0 us", for Fabric::text.
std::string nic_text(const NicSpec& nic);

}  // namespace convoy::topologies
