// SPDX-License-Identifier: MIT
#include "topologies/link_table.h"

#include <string_view>

namespace convoy::inline topologies {

namespace {

constexpr const char *up_ending = ".up", *down_ending = ".down";

}  // namespace

LinkId LinkTable::add_cable(std::string name, double bandwidth_Bps, double latency_s, LinkKind kind) {
  const auto up = static_cast<LinkId>(links_.size());
  links_.push_back({name + up_ending, bandwidth_Bps, latency_s, ports_, kind, Link::Direction::up});
  links_.push_back(
      {std::move(name) + down_ending, bandwidth_Bps, latency_s, ports_, kind, Link::Direction::down});
  ++ports_;
  return up;
}

LinkId LinkTable::add_medium(std::string name, double bandwidth_Bps, double latency_s, LinkKind kind) {
  const auto id = static_cast<LinkId>(links_.size());
  links_.push_back({std::move(name), bandwidth_Bps, latency_s, ports_++, kind, Link::Direction::both});
  return id;
}

void LinkTable::give_to(std::uint32_t host, LinkId first) {
  for (std::size_t l = first; l < links_.size(); ++l) links_[l].host = host;
}

std::string port_name(const Link& link) {
  if (link.direction == Link::Direction::both) return link.name;
  const std::string_view ending = link.direction == Link::Direction::up ? up_ending : down_ending;
  return link.name.substr(0, link.name.size() - ending.size());
}

}  // namespace convoy::topologies
