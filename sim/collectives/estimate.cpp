// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/collectives/collectives.h"

namespace convoy::inline collectives {
namespace {

/// Finds the routes of the messages of a pattern, round by round. Most rounds of a pipelined tree have nearly all messages of
/// the round before in the same order: those need not be asked of the machine's router again. If there are too many to be kept,
/// it begins anew.
class RoutesByRound {
 public:
  /// A message and its route.
  struct Way {
    EndpointId from, to;
    std::uint32_t first_link, link_count;
    double latency_s, connection_Bps;
    std::pair<EndpointId, EndpointId> connection;
  };
  explicit RoutesByRound(const Router& router) : router_(router) {}

  void begin_round() {
    std::swap(before_, now_);
    now_.clear();
    next_ = 0;
  }
  /// Of the next message of the round.
  const Way& of(EndpointId from, EndpointId to) {
    now_.push_back(number_of(from, to));
    return ways_[now_.back()];
  }
  std::span<const LinkId> links(const Way& way) const {
    return {links_.data() + way.first_link, way.link_count};
  }

 private:
  std::uint32_t number_of(EndpointId from, EndpointId to) {
    constexpr std::size_t looked_at = 4, most_kept = 1 << 16;
    for (std::size_t k = next_; k < std::min(before_.size(), next_ + looked_at); ++k)
      if (const Way& way = ways_[before_[k]]; way.from == from && way.to == to) {
        next_ = k + 1;
        return before_[k];
      }
    if (ways_.size() == most_kept) ways_.clear(), links_.clear(), before_.clear(), now_.clear();
    router_.route(from, to, route_);
    ways_.push_back({from, to, static_cast<std::uint32_t>(links_.size()),
                     static_cast<std::uint32_t>(route_.links.size()), route_.latency_s, route_.connection_Bps,
                     route_.connection});
    links_.insert(links_.end(), route_.links.begin(), route_.links.end());
    return static_cast<std::uint32_t>(ways_.size() - 1);
  }

  const Router& router_;
  Route route_;
  std::vector<Way> ways_;
  std::vector<LinkId> links_;                ///< of all of them, one route after the other
  std::vector<std::uint32_t> before_, now_;  ///< by message of the round: in ways_
  std::size_t next_ = 0;                     ///< in before_, after the last message that this round has again
};

}  // namespace

double estimate_s(const Pattern& pattern, const Machine& machine, double bytes, double enough_s) {
  double total_s = 0;
  std::vector<double> load(machine.links.size(), 0.0);
  std::vector<LinkId> touched;
  std::map<std::pair<EndpointId, EndpointId>, double> on_connection;
  RoutesByRound routes(*machine.router);
  for (const Round& round : pattern.rounds) {
    double latency_s = 0, transfer_s = 0;
    routes.begin_round();
    for (const std::vector<EndpointId>& group : pattern.groups) {
      round.for_each_message([&](std::uint32_t from, std::uint32_t to, double fraction) {
        const RoutesByRound::Way& way = routes.of(group[from], group[to]);
        latency_s = std::max(latency_s, round.latency_s.value_or(way.latency_s));
        for (const LinkId link : routes.links(way)) {
          if (load[link] == 0) touched.push_back(link);
          load[link] += bytes * fraction;
        }
        if (std::isfinite(way.connection_Bps)) {
          double& sent = on_connection[way.connection];
          sent += bytes * fraction;
          transfer_s = std::max(transfer_s, sent / way.connection_Bps);
        }
      });
    }
    for (const LinkId link : touched) {
      transfer_s = std::max(transfer_s, load[link] / machine.links[link].bandwidth_Bps);
      load[link] = 0;
    }
    touched.clear();
    on_connection.clear();
    total_s += round.repeat * (latency_s + transfer_s);
    if (total_s >= enough_s) break;
  }
  return total_s;
}

}  // namespace convoy::collectives
