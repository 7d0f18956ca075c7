// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "topologies/interior.h"
#include "topologies/link_table.h"

namespace convoy::inline topologies {

/// Messages between devices that go through the host's memory: written there by the sender, then read by the
/// receiver. None where the bandwidth is infinite.
struct Staging {
  /// Of all of them together.
  double bandwidth_Bps = std::numeric_limits<double>::infinity();
  double lane_share = 1;  ///< of a device's PCIe bandwidth, for those that it sends and receives together
};

/// The inside of a server with the ways between its places worked out once; every host of the kind has the
/// same links at its own offset. Places are numbered: devices, then the host's memory, then NICs.
class ServerLayout {
 public:
  /// @param interior nullptr for a host without devices or with a single one: all of it is one place.
  /// @param copy_bandwidth_Bps of copies through the host's memory on the way to NICs and memory, infinite
  /// for none.
  ServerLayout(const Interior* interior, std::uint32_t devices, std::uint32_t nics,
               double copy_bandwidth_Bps = std::numeric_limits<double>::infinity(), Staging staging = {});

  std::uint32_t memory() const { return devices_; }
  std::uint32_t nic(std::uint32_t index) const { return devices_ + 1 + index; }
  /// The NIC that a place uses: the one nearest to it; places that have several equally near take turns.
  std::uint32_t nearest_nic(std::uint32_t place) const { return nearest_nic_[place]; }
  /// Links of the way, counted from the host's first link. Empty within one place.
  std::span<const LinkId> path(std::uint32_t from, std::uint32_t to) const {
    const std::size_t cell = from * places() + to;
    return {path_links_.data() + path_start_[cell], path_start_[cell + 1] - path_start_[cell]};
  }

  /// Adds the links of the host `name`; returns the first.
  LinkId add_links(const std::string& name, LinkTable& table) const;
  std::size_t link_count() const { return 2 * cables_.size() + media_.size(); }

 private:
  std::size_t places() const { return devices_ + 1 + nics_; }
  void work_out_paths(const InteriorGraph& graph);
  void choose_nics(const std::vector<std::vector<std::uint32_t>>& nearest);
  /// @param paths by from and to
  void keep_paths(const InteriorGraph& graph, const std::vector<std::vector<Direction>>& paths);
  void add_media(const InteriorGraph& graph, const std::vector<std::vector<Direction>>& paths);

  struct Medium {
    std::string name;  ///< "staging", "gpu3.staging"
    double bandwidth_Bps;
  };

  std::uint32_t devices_, nics_;
  Staging staging_;
  std::vector<Cable> cables_;  ///< those that some way uses
  std::vector<Medium> media_;  ///< the host's memory, then each device's lanes; empty without staging
  std::vector<std::size_t> path_start_;  ///< by from, to: into path_links_
  std::vector<LinkId> path_links_;
  std::vector<std::uint32_t> nearest_nic_;  ///< of each device, and of the memory
};

}  // namespace convoy::topologies
