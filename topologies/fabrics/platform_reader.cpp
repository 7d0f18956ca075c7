// SPDX-License-Identifier: MIT
#include "topologies/fabrics/platform_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/names.h"
#include "sim/base/quantity.h"

namespace convoy::inline topologies {
namespace {

constexpr std::size_t max_platform_hosts = 4096;

/// What SimGrid means by a number and a unit of its own; `plain` is a number's without a unit.
double platform_quantity(const XmlElement& element, std::string_view attribute,
                         const std::vector<std::pair<std::string_view, double>>& units) {
  const std::string& text = element.text(attribute);
  const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  const std::optional<double> number = parse_number(text.substr(0, end));
  const std::string unit = text.substr(end);
  const auto known =
      std::find_if(units.begin(), units.end(), [&](const auto& entry) { return entry.first == unit; });
  if (!number || *number < 0 || (!unit.empty() && known == units.end()))
    element.fail(
        fmt::format("{}: '{}' is no quantity such as '{}{}'", attribute, text, "10", units.front().first));
  return unit.empty() ? *number : *number * known->second;
}

double platform_bandwidth_Bps(const XmlElement& element, std::string_view attribute) {
  static const std::vector<std::pair<std::string_view, double>> units{{"MBps", 1e6},
                                                                      {"GBps", 1e9},
                                                                      {"kBps", 1e3},
                                                                      {"Bps", 1},
                                                                      {"TBps", 1e12},
                                                                      {"MiBps", 1 << 20},
                                                                      {"GiBps", 1 << 30},
                                                                      {"KiBps", 1 << 10},
                                                                      {"bps", 1 / 8.0},
                                                                      {"kbps", 1e3 / 8},
                                                                      {"Mbps", 1e6 / 8},
                                                                      {"Gbps", 1e9 / 8},
                                                                      {"Tbps", 1e12 / 8},
                                                                      {"Kibps", 128},
                                                                      {"Mibps", (1 << 20) / 8.0},
                                                                      {"Gibps", (1 << 30) / 8.0}};
  const double bandwidth_Bps = platform_quantity(element, attribute, units);
  if (bandwidth_Bps <= 0) element.fail(fmt::format("{}: must be more than zero", attribute));
  return bandwidth_Bps;
}

double platform_time_s(const XmlElement& element, std::string_view attribute) {
  static const std::vector<std::pair<std::string_view, double>> units{
      {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"ns", 1e-9}, {"ps", 1e-12}, {"m", 60}, {"h", 3600}};
  return platform_quantity(element, attribute, units);
}

/// "0-3,8,10-11" -> 0 1 2 3 8 10 11
std::vector<std::uint32_t> radical_of(const XmlElement& element) {
  const std::string& text = element.text("radical");
  std::vector<std::uint32_t> numbers;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t dash = part.find('-');
    const std::optional<double> first = parse_number(part.substr(0, dash));
    const std::optional<double> last =
        dash == std::string::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > 1e6 || *first != std::floor(*first) ||
        *last != std::floor(*last))
      element.fail(fmt::format("radical: '{}' is no list of numbers such as 0-15", text));
    if (numbers.size() + static_cast<std::size_t>(*last - *first) >= max_platform_hosts)
      element.fail(fmt::format("radical: more than {} hosts", max_platform_hosts));
    for (auto n = static_cast<std::uint32_t>(*first); n <= static_cast<std::uint32_t>(*last); ++n)
      numbers.push_back(n);
    start = end + 1;
  }
  return numbers;
}

bool is_split(const XmlElement& element, std::string_view attribute, const std::string& fallback) {
  const std::string policy = element.text_or(attribute, fallback);
  if (policy == "SPLITDUPLEX" || policy == "FULLDUPLEX") return true;
  if (policy == "SHARED") return false;
  element.fail(fmt::format("{}: {} is not read; SHARED and SPLITDUPLEX are", attribute, policy));
}

bool is_zone(const std::string& name) { return name == "zone" || name == "AS"; }

}  // namespace

void PlatformReader::read(const std::string& file) {
  const XmlElement root = load_xml(file);
  if (root.name != "platform") root.fail("expected SimGrid's <platform>");
  if (const double version = root.number("version"); version < 4 || version >= 5)
    root.fail(fmt::format("version {} is not read; 4 and 4.1 are", root.text("version")));
  bool found = false;
  for (const XmlElement& child : root.children) {
    if (child.name == "config" || child.name == "prop") continue;
    if (found) child.fail("a platform has one outermost zone");
    found = true;
    if (is_zone(child.name))
      read_zone(child, 0, true);
    else if (child.name == "cluster")
      read_cluster(child, 0, true);
    else
      child.fail("expected a <zone> or a <cluster>");
  }
  if (platform_.hosts_.empty()) root.fail("has no hosts");
}

std::uint32_t PlatformReader::add_zone(const XmlElement& element, std::uint32_t parent, bool outermost) {
  const auto index = static_cast<std::uint32_t>(platform_.zones_.size());
  const std::string& name = element.text("id");
  if (!zone_of_.emplace(name, index).second) element.fail(fmt::format("there is a zone '{}' already", name));
  PlatformFile::Zone zone;
  zone.name = name;
  zone.pos = element.pos;
  zone.parent = outermost ? index : parent;
  platform_.zones_.push_back(std::move(zone));
  return index;
}

void PlatformReader::read_zone(const XmlElement& element, std::uint32_t parent, bool outermost) {
  const std::uint32_t zone = add_zone(element, parent, outermost);
  const std::string routing = element.text("routing");
  if (routing != "Full" && routing != "Floyd" && routing != "Dijkstra" && routing != "DijkstraCache")
    element.fail(fmt::format("routing: {} is not read; Full, Floyd and Dijkstra are", routing));
  platform_.zones_[zone].shortest = routing != "Full";
  for (const XmlElement& child : element.children) {
    if (is_zone(child.name))
      read_zone(child, zone, false);
    else if (child.name == "cluster")
      read_cluster(child, zone, false);
    else if (child.name == "host" || child.name == "router")
      add_place(child, child.text("id"), zone, child.name == "host");
    else if (child.name == "link")
      read_link(child);
    else if (child.name == "route")
      read_route(child, zone, false);
    else if (child.name == "zoneRoute" || child.name == "ASroute")
      read_route(child, zone, true);
    else if (child.name != "prop")
      child.fail("is not read; zone, cluster, host, router, link, route and zoneRoute are");
  }
}

void PlatformReader::add_place(const XmlElement& element, const std::string& name, std::uint32_t zone,
                               bool host) {
  if (!platform_.places_.emplace(name, PlatformFile::Place{zone}).second)
    element.fail(fmt::format("there is a host or router '{}' already", name));
  if (!host) return;
  if (platform_.hosts_.size() == max_platform_hosts)
    element.fail(fmt::format("more than {} hosts", max_platform_hosts));
  platform_.hosts_.push_back(name);
}

std::uint32_t PlatformReader::add_link(const XmlElement& element, PlatformLink link) {
  const auto index = static_cast<std::uint32_t>(platform_.links_.size());
  if (!link_of_.emplace(link.name, index).second)
    element.fail(fmt::format("there is a link '{}' already", link.name));
  platform_.links_.push_back(std::move(link));
  return index;
}

void PlatformReader::read_link(const XmlElement& element) {
  const bool split = is_split(element, "sharing_policy", "SHARED");
  add_link(element, {element.text("id"), platform_bandwidth_Bps(element, "bandwidth"),
                     element.find("latency") ? platform_time_s(element, "latency") : 0, split});
}

PlatformWay PlatformReader::read_way(const XmlElement& element) const {
  PlatformWay way;
  for (const XmlElement& child : element.children) {
    if (child.name != "link_ctn") child.fail("is not read here; link_ctn is");
    const std::string& name = child.text("id");
    const auto link = link_of_.find(name);
    if (link == link_of_.end()) {
      std::vector<std::string> names;
      for (const auto& [known, index] : link_of_) names.push_back(known);
      child.fail(fmt::format("unknown link '{}'{}", name, suggestion(name, names)));
    }
    const std::string direction = child.text_or("direction", "UP");
    if (direction != "UP" && direction != "DOWN")
      child.fail(fmt::format("direction: expected UP or DOWN, found '{}'", direction));
    way.push_back({link->second, direction == "DOWN" && platform_.links_[link->second].split});
  }
  return way;
}

void PlatformReader::read_route(const XmlElement& element, std::uint32_t zone, bool between_zones) {
  PlatformFile::Zone::ZoneRoute route;
  const std::string &from = element.text("src"), &to = element.text("dst");
  for (const std::string& end : {from, to}) {
    const auto place = platform_.places_.find(end);
    const bool known = between_zones ? zone_of_.contains(end)
                                     : place != platform_.places_.end() && place->second.zone == zone;
    if (!known)
      element.fail(fmt::format("there is no {} '{}' here", between_zones ? "zone" : "host or router", end));
  }
  if (between_zones) {
    route.from_gateway = element.text("gw_src");
    route.to_gateway = element.text("gw_dst");
    for (const std::string& gateway : {route.from_gateway, route.to_gateway})
      if (!platform_.places_.contains(gateway))
        element.fail(fmt::format("there is no host or router '{}'", gateway));
  }
  route.way = read_way(element);
  const std::string symmetrical = element.text_or("symmetrical", "YES");
  PlatformFile::Zone::ZoneRoute back{route.way, route.to_gateway, route.from_gateway};
  std::reverse(back.way.begin(), back.way.end());
  for (PlatformHop& hop : back.way) hop.down = platform_.links_[hop.link].split && !hop.down;
  PlatformFile::Zone& of = platform_.zones_[zone];
  const auto add = [&](const std::string& a, const std::string& b, PlatformFile::Zone::ZoneRoute&& way) {
    const bool is_new = of.routes.emplace(std::pair{a, b}, std::move(way)).second;
    if (is_new) of.reached[a].push_back(b);
    return is_new;
  };
  if (!add(from, to, std::move(route)))
    element.fail(fmt::format("there is a route from '{}' to '{}' already", from, to));
  if (symmetrical == "YES" || symmetrical == "yes") add(to, from, std::move(back));
}

void PlatformReader::read_cluster(const XmlElement& element, std::uint32_t parent, bool outermost) {
  for (const char* other : {"topology", "limiter_link"})
    if (const std::string* value = element.find(other); value && *value != "FLAT")
      element.fail(fmt::format("{}: {} is not read", other, *value));
  const std::uint32_t zone = add_zone(element, parent, outermost);
  const bool split = is_split(element, "sharing_policy", "SPLITDUPLEX");
  const std::string prefix = element.text_or("prefix", ""), suffix = element.text_or("suffix", "");
  const std::string id = element.text("id");
  const double bandwidth_Bps = platform_bandwidth_Bps(element, "bw"),
               latency_s = platform_time_s(element, "lat");
  PlatformWay backbone;
  if (element.find("bb_bw"))
    backbone.push_back({add_link(element, {id + "_backbone", platform_bandwidth_Bps(element, "bb_bw"),
                                           element.find("bb_lat") ? platform_time_s(element, "bb_lat") : 0,
                                           is_split(element, "bb_sharing_policy", "SHARED")}),
                        false});
  const std::string router = element.text_or("router_id", prefix + id + "_router" + suffix);
  add_place(element, router, zone, false);
  for (const std::uint32_t number : radical_of(element)) {
    const std::string host = prefix + std::to_string(number) + suffix;
    add_place(element, host, zone, true);
    const std::uint32_t lane =
        add_link(element, {fmt::format("{}_link_{}", id, number), bandwidth_Bps, latency_s, split});
    platform_.zones_[zone].lanes.emplace(host, lane);
  }
  platform_.zones_[zone].backbone = std::move(backbone);
}

}  // namespace convoy::topologies
