// SPDX-License-Identifier: MIT
#include "topologies/fabrics/platform_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "topologies/fabrics/platform_reader.h"

namespace convoy::inline topologies {
namespace {

constexpr int max_zone_depth = 64;

void append_way(PlatformWay& way, const PlatformWay& more) {
  way.insert(way.end(), more.begin(), more.end());
}

}  // namespace

PlatformFile::PlatformFile(const std::string& file) { PlatformReader(*this).read(file); }

std::uint32_t PlatformFile::depth(std::uint32_t zone) const {
  std::uint32_t depth = 0;
  for (; zones_[zone].parent != zone; zone = zones_[zone].parent) ++depth;
  return depth;
}

PlatformWay PlatformFile::way(std::uint32_t from, std::uint32_t to) const {
  return way_between(hosts_[from], hosts_[to], 0);
}

PlatformWay PlatformFile::way_between(const std::string& from, const std::string& to, int level) const {
  if (from == to) return {};
  std::uint32_t a = places_.at(from).zone, b = places_.at(to).zone;
  if (level > max_zone_depth)
    throw InputError(zones_[a].pos, fmt::format("the way from '{}' to '{}' comes back to itself", from, to));
  if (a == b) return way_in(zones_[a], from, to, level);
  // Up to the innermost zone that has both, and the zones (or places) right below it on the two sides.
  std::string below_a = from, below_b = to;
  const auto rise = [&](std::uint32_t& zone, std::string& below) {
    below = zones_[zone].name;
    zone = zones_[zone].parent;
  };
  while (depth(a) > depth(b)) rise(a, below_a);
  while (depth(b) > depth(a)) rise(b, below_b);
  while (a != b) rise(a, below_a), rise(b, below_b);
  const auto route = zones_[a].routes.find({below_a, below_b});
  if (route == zones_[a].routes.end())
    throw InputError(zones_[a].pos,
                     fmt::format("zone '{}' has no route from '{}' to '{}', which '{}' needs to reach '{}'",
                                 zones_[a].name, below_a, below_b, from, to));
  PlatformWay way;
  append_route(route->second, from, to, level, way);
  return way;
}

void PlatformFile::append_route(const Zone::ZoneRoute& route, const std::string& from, const std::string& to,
                                int level, PlatformWay& way) const {
  if (!route.from_gateway.empty()) append_way(way, way_between(from, route.from_gateway, level + 1));
  append_way(way, route.way);
  if (!route.to_gateway.empty()) append_way(way, way_between(route.to_gateway, to, level + 1));
}

PlatformWay PlatformFile::way_in(const Zone& zone, const std::string& from, const std::string& to,
                                 int) const {
  if (!zone.lanes.empty()) {  // a cluster: up, backbone, down; its router has no lane
    PlatformWay way;
    const auto up = zone.lanes.find(from), down = zone.lanes.find(to);
    if (up != zone.lanes.end()) way.push_back({up->second, false});
    append_way(way, zone.backbone);
    if (down != zone.lanes.end()) way.push_back({down->second, links_[down->second].split});
    return way;
  }
  if (const auto direct = zone.routes.find({from, to}); direct != zone.routes.end())
    return direct->second.way;
  if (zone.shortest) {  // fewest routes, those written first before others
    std::map<std::string, std::string> before{{from, from}};
    std::deque<std::string> open{from};
    while (!open.empty() && !before.contains(to)) {
      const std::string at = open.front();
      open.pop_front();
      const auto ends = zone.reached.find(at);
      if (ends == zone.reached.end()) continue;
      for (const std::string& end : ends->second)
        if (before.emplace(end, at).second) open.push_back(end);
    }
    if (before.contains(to)) {
      std::vector<const PlatformWay*> parts;
      for (std::string at = to; at != from; at = before.at(at))
        parts.push_back(&zone.routes.at({before.at(at), at}).way);
      PlatformWay way;
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) append_way(way, **part);
      return way;
    }
  }
  throw InputError(zone.pos, fmt::format("zone '{}' has no route from '{}' to '{}'", zone.name, from, to));
}

}  // namespace convoy::topologies
