// SPDX-License-Identifier: MIT
#include "sim/replay/disturbed.h"

#include <algorithm>

namespace convoy::inline replays {

void disturb_links(const Disturbances& disturbances, const Machine& machine, const Folding& folding,
                   Engine& engine) {
  for (const Disturbances::LinkChange& change : disturbances.link_changes) {
    const std::uint32_t link = folding.link_class[change.link];
    if (link != Folding::none)
      engine.after(change.at_s) = [&engine, link, bandwidth_Bps = change.bandwidth_Bps] {
        engine.set_bandwidth(link, bandwidth_Bps);
      };
  }
  Route way;
  for (const Disturbances::Transfer& transfer : disturbances.transfers) {
    machine.router->route(transfer.from, transfer.to, way);
    std::vector<LinkUse> uses;
    for (const LinkId link : way.links)
      if (folding.link_class[link] != Folding::none) uses.push_back({folding.link_class[link], 1});
    if (uses.empty()) continue;
    const std::uint32_t route = engine.add_route(uses, transfer.limit_Bps);
    engine.after(transfer.at_s) = [&engine, route, bytes = transfer.bytes] {
      engine.start_flow(bytes, route) = [] {};
    };
  }
}

Stops::Stops(const Disturbances& disturbances, const Folding& folding) {
  for (const Disturbances::Stop& stop : disturbances.stops)
    if (const std::uint32_t c = folding.endpoint_class[stop.endpoint];
        c != Folding::none && folding.endpoints[c] == stop.endpoint)
      by_class_[c].push_back(stop);
  for (auto& [c, stops] : by_class_)
    std::stable_sort(stops.begin(), stops.end(),
                     [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
}

double Stops::with_stops_s(std::uint32_t endpoint_class, double now_s, double duration_s) const {
  const auto stops = by_class_.find(endpoint_class);
  if (stops == by_class_.end()) return duration_s;
  return end_of_computation_s(now_s, duration_s, stops->second) - now_s;
}

double Stops::before_s(std::uint32_t endpoint_class, double now_s) const {
  const auto stops = by_class_.find(endpoint_class);
  return stops == by_class_.end() ? 0 : stopped_before_s(now_s, stops->second);
}

}  // namespace convoy::replays
