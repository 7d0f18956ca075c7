// SPDX-License-Identifier: MIT
#include "topologies/link_table.h"

#include <string_view>

namespace convoy::inline topologies {

LinkId LinkTable::add_cable(std::string name, double bandwidth_Bps, double latency_s) {
  const auto up = static_cast<LinkId>(links_.size());
  links_.push_back({name + ".up", bandwidth_Bps, latency_s, ports_});
  links_.push_back({std::move(name) + ".down", bandwidth_Bps, latency_s, ports_});
  ++ports_;
  return up;
}

LinkId LinkTable::add_medium(std::string name, double bandwidth_Bps, double latency_s) {
  const auto id = static_cast<LinkId>(links_.size());
  links_.push_back({std::move(name), bandwidth_Bps, latency_s, ports_++});
  return id;
}

std::string port_name(const Link& link) {
  for (const std::string_view direction : {".up", ".down"})
    if (link.name.ends_with(direction)) return link.name.substr(0, link.name.size() - direction.size());
  return link.name;
}

}  // namespace convoy::topologies
