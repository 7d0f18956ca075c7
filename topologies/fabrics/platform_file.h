// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline topologies {

/// A link of a platform: SHARED is one medium for both directions, SPLITDUPLEX has each on its own.
struct PlatformLink {
  std::string name;
  double bandwidth_Bps = 0, latency_s = 0;
  bool split = false;
};

/// A link on a way, and whether its second direction (DOWN) is used.
struct PlatformHop {
  std::uint32_t link = 0;
  bool down = false;
};
using PlatformWay = std::vector<PlatformHop>;

/// A SimGrid platform as written (XML, version 4): zones with Full, Floyd or Dijkstra routing (the latter
/// two: the way of fewest routes) and clusters, inside each other, joined by zone routes.
class PlatformFile {
 public:
  /// @throws InputError with the place: no platform, something of SimGrid's that is not read (other routings,
  /// FATPIPE links, traces), double or unknown names, a quantity that is none
  explicit PlatformFile(const std::string& file);

  const std::vector<PlatformLink>& links() const { return links_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< names, in the file's order

  /// The way between two hosts. @throws InputError: none
  PlatformWay way(std::uint32_t from, std::uint32_t to) const;

 private:
  friend class PlatformReader;
  struct Zone {
    std::string name;
    SourcePos pos;
    std::uint32_t parent = 0;  ///< of the outermost: itself
    bool shortest = false;     ///< Floyd, Dijkstra: routes are joined
    struct ZoneRoute {
      PlatformWay way;
      std::string from_gateway, to_gateway;  ///< of routes between zones
    };
    std::map<std::pair<std::string, std::string>, ZoneRoute> routes;  ///< by the names of places or zones
    std::map<std::string, std::vector<std::string>> reached;  ///< from each, as the file gives the routes
    std::map<std::string, std::uint32_t> lanes;               ///< of a cluster: the link of each host
    PlatformWay backbone;                                     ///< of a cluster
  };
  struct Place {
    std::uint32_t zone = 0;
  };

  std::uint32_t depth(std::uint32_t zone) const;
  PlatformWay way_between(const std::string& from, const std::string& to, int depth) const;
  PlatformWay way_in(const Zone& zone, const std::string& from, const std::string& to, int depth) const;
  void append_route(const Zone::ZoneRoute& route, const std::string& from, const std::string& to, int depth,
                    PlatformWay& way) const;

  std::vector<PlatformLink> links_;
  std::vector<std::string> hosts_;
  std::vector<Zone> zones_;
  std::map<std::string, Place> places_;  ///< hosts and routers
};

}  // namespace convoy::topologies
