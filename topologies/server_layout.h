// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "topologies/interior.h"
#include "topologies/link_table.h"

namespace convoy {

/// The inside of a server with the ways between its places worked out once; every host of the kind has the
/// same links at its own offset. Places are numbered: devices, then the host's memory, then NICs.
class ServerLayout {
 public:
  /// @param interior nullptr for a host without devices or with a single one: all of it is one place.
  /// @param copy_bandwidth_Bps of copies through the host's memory on the way to NICs and memory, infinite
  /// for none.
  ServerLayout(const Interior* interior, std::uint32_t devices, std::uint32_t nics,
               double copy_bandwidth_Bps = std::numeric_limits<double>::infinity());

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
  std::size_t link_count() const { return 2 * cables_.size(); }

 private:
  std::size_t places() const { return devices_ + 1 + nics_; }
  void work_out_paths(const InteriorGraph& graph);

  std::uint32_t devices_, nics_;
  std::vector<Cable> cables_;            ///< those that some way uses
  std::vector<std::size_t> path_start_;  ///< by from, to: into path_links_
  std::vector<LinkId> path_links_;
  std::vector<std::uint32_t> nearest_nic_;  ///< of each device, and of the memory
};

}  // namespace convoy
