// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topologies/machine.h"

namespace convoy::inline topologies {

/// The links of a machine while it is built. Links of one cable get the same port number; ports are dense
/// from 0.
class LinkTable {
 public:
  /// Both directions of a cable: the returned link is NAME.up, the next one NAME.down.
  LinkId add_cable(std::string name, double bandwidth_Bps, double latency_s,
                   LinkKind kind = LinkKind::network);
  /// One link that carries both directions.
  LinkId add_medium(std::string name, double bandwidth_Bps, double latency_s,
                    LinkKind kind = LinkKind::network);

  /// Says that the links from `first` on are a host's.
  void give_to(std::uint32_t host, LinkId first);

  void reserve(std::size_t links) { links_.reserve(links); }
  const std::vector<Link>& links() const { return links_; }
  std::uint32_t port_count() const { return ports_; }
  std::vector<Link> take() { return std::move(links_); }

 private:
  std::vector<Link> links_;
  std::uint32_t ports_ = 0;
};

}  // namespace convoy::topologies
