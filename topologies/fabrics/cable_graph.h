// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// A fabric as other programs' files describe it: places and cables. The first places are the NICs of hosts, NIC n
/// of host h at h * nics + n; then come switches.
struct CableGraph {
  struct Cable {
    std::uint32_t a = 0, b = 0;
    double bandwidth_Bps = 0;  ///< in each direction, as payload can use it
    double latency_s = 0;
  };
  std::size_t hosts = 0, nics = 1;
  std::vector<std::string> switches;  ///< their names
  std::vector<Cable> cables;          ///< at most one between two places
  bool hosts_forward = false;         ///< hosts pass on what is others'
  std::string text;                   ///< Fabric::text
};

/// Messages go the way of least latency, and of these of fewest cables; where several are left, receivers are dealt
/// out to them in turn (d-mod-k). Clusters have as many hosts as the graph.
std::shared_ptr<const Fabric> make_cable_graph_fabric(const YamlMap& map, NicSpec nic, CableGraph graph);

/// A path in the machine of at most so many places is worked out from every NIC to every other one.
constexpr std::size_t most_graph_places = 4096, most_graph_nics = 2048;

}  // namespace convoy::topologies
