// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// PCIe of a server: every device's own lanes to one root, or to PCIe switches whose uplinks go to sockets,
/// which one socket link (QPI, UPI, Infinity Fabric) joins in a row.
struct PcieTree {
  double bandwidth_Bps = 0;  ///< of each device's lanes, each direction
  double latency_s = 0;      ///< one way between two devices under one switch or root
  double uplink_Bps = 0;     ///< of each switch
  double socket_link_Bps = 0;
  double hop_latency_s = 0;                          ///< of each uplink and socket link
  std::vector<std::vector<std::uint32_t>> switches;  ///< devices of each switch; empty: all at the root
  std::vector<std::vector<std::uint32_t>> sockets;   ///< switches of each socket; empty: one socket

  /// Adds lanes, switches and sockets to a graph that has its devices, and places memory (first socket) and
  /// NICs: one NIC at the first socket, several spread evenly over the switches (over the sockets where there
  /// are no switches).
  void add_to(InteriorGraph& graph, std::uint32_t nics) const;
  std::string text() const;
};

std::vector<KeyText> pcie_keys();

/// The `pcie` of an interconnect whose devices have links of their own: absent, nothing limits the ways to
/// the host's memory and NICs.
std::optional<PcieTree> read_optional_pcie(YamlMap& map, std::uint32_t devices);
/// Its key, with what an interconnect's draft has as `devices` and `pcie`.
template <class Draft>
Key<Draft> pcie_key() {
  return custom_key<Draft>(
             "pcie", "none", forms::parts("a mapping"), "lanes to the host; without it these ways are free",
             [](YamlMap& map, Draft& draft) { draft.pcie = read_optional_pcie(map, draft.devices); })
      .with_parts(pcie_keys());
}
/// Adds it: the tree, or the host with the free ways to it.
void add_host_side(InteriorGraph& graph, const std::optional<PcieTree>& pcie, std::uint32_t nics);

/// `kind: pcie`
std::shared_ptr<const Interior> read_pcie_interior(YamlMap& map, std::uint32_t devices);

/// A list of lists that has each of 0 … count-1 exactly once ("devices", "switches": what is listed).
/// @throws InputError
std::vector<std::vector<std::uint32_t>> read_grouping(YamlMap& map, std::string_view key, std::uint32_t count,
                                                      std::string_view what);

}  // namespace convoy::topologies
