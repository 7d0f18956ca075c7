// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"
#include "topologies/shortest_paths.h"

namespace convoy::inline topologies {

/// The inside of a server: vertices are devices, switches and sockets. What is at one vertex is in one place.
/// A cable of infinite bandwidth stands for no cable at all: a way over it has no link for it.
struct InteriorGraph {
  std::vector<Cable> cables;
  std::vector<bool> transit;  ///< by vertex: passes on what is not its own (switches do, devices do not)
  std::vector<std::uint32_t> devices_at;  ///< vertex of each device
  std::uint32_t memory_at = 0;            ///< vertex where the host's memory is
  std::vector<std::uint32_t> nics_at;     ///< vertex where each NIC is

  std::uint32_t add_vertex(bool passes_on) {
    transit.push_back(passes_on);
    return static_cast<std::uint32_t>(transit.size() - 1);
  }
};

/// Costs of a cable for the choice of the way: NVLink (two cables through an NVSwitch) before PCIe.
constexpr double nvlink_way_cost = 1;
constexpr double pcie_way_cost = 4;

/// How the devices of a server are connected (`interconnect:`). Immutable.
class Interior {
 public:
  virtual ~Interior() = default;
  /// The graph for the first `devices` (>= 2) devices of the server and `nics` NICs.
  virtual InteriorGraph graph(std::uint32_t devices, std::uint32_t nics) const = 0;
  /// One line for people: "PCIe 12 GB/s".
  virtual std::string text() const = 0;
};

/// Reads an `interconnect:` mapping of a server with `devices` devices. @throws InputError
std::shared_ptr<const Interior> read_interior(const YamlNode& node, const std::string& path,
                                              std::uint32_t devices);

struct InteriorEntry {
  std::string_view kind;
  std::string_view summary;
  std::vector<KeyText> keys;  ///< of the table that `read` goes by
  std::shared_ptr<const Interior> (*read)(YamlMap& map, std::uint32_t devices);
};
const std::vector<InteriorEntry>& interior_registry();

}  // namespace convoy::topologies
