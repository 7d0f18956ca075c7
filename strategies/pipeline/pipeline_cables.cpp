// SPDX-License-Identifier: MIT
// What lies between the slots of a pipeline: cables to the next stage, rings of replicas, links that both
// ends share.
#include <algorithm>
#include <limits>

#include "strategies/pipeline/pipeline_costs.h"

namespace convoy {

void PipelineCosts::add_cables(const Machine& machine) {
  const std::vector<std::vector<EndpointId>>& slots = shape_.slots;
  const auto cable = [&](EndpointId from, EndpointId to) {
    Route route;
    machine.router->route(from, to, route);
    Cable result{std::numeric_limits<double>::infinity(), route.latency_s};
    for (const LinkId link : route.links)
      result.bandwidth_Bps = std::min(result.bandwidth_Bps, machine.links[link].bandwidth_Bps);
    return result;
  };
  const auto slower = [](const Cable& a, const Cable& b) {
    return Cable{std::min(a.bandwidth_Bps, b.bandwidth_Bps), std::max(a.latency_s, b.latency_s)};
  };
  for (std::size_t q = 0; q < slots.size(); ++q) {
    Cable& to_slot = cables_.emplace_back(q == 0 ? Cable{} : cable(slots[q - 1].front(), slots[q].front()));
    if (q > 0)
      for (const auto& [link, pipelines] : crossings(machine, slots[q - 1], slots[q]))
        to_slot.bandwidth_Bps =
            std::min(to_slot.bandwidth_Bps, machine.links[link].bandwidth_Bps / pipelines);
  }
  for (std::size_t first = 0; first < slots.size(); ++first) {
    const Cable none{std::numeric_limits<double>::infinity(), 0};
    Cable along = slots[first].size() < 2 ? none : cable(slots[first][0], slots[first][1]);
    rings_.push_back({none, along});
    for (std::size_t last = first + 1; last < slots.size(); ++last) {
      along = slower(along, cables_[last]);
      rings_.back().push_back(slower(along, cable(slots[last].back(), slots[first].front())));
    }
  }
  add_shared_links(machine);
}

/// How often pairs of equal positions in two slots cross each link on their way.
std::map<LinkId, double> PipelineCosts::crossings(const Machine& machine, const std::vector<EndpointId>& from,
                                                  const std::vector<EndpointId>& to) {
  std::map<LinkId, double> result;
  Route route;
  for (std::size_t r = 0; r < from.size(); ++r) {
    machine.router->route(from[r], to[r], route);
    for (const LinkId link : route.links) ++result[link];
  }
  return result;
}

void PipelineCosts::add_shared_links(const Machine& machine) {
  const std::vector<std::vector<EndpointId>>& slots = shape_.slots;
  const auto narrowest_common = [&](const std::map<LinkId, double>& a, const std::map<LinkId, double>& b) {
    double result = std::numeric_limits<double>::infinity();
    for (const auto& [link, pipelines] : a)
      if (const auto other = b.find(link); other != b.end())
        result = std::min(result, machine.links[link].bandwidth_Bps / std::max(pipelines, other->second));
    return result;
  };
  constexpr double none = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < slots.size(); ++first) {
    shared_.push_back({{none, none}});
    for (std::size_t next = first + 1; next < slots.size() && first > 0; ++next)
      shared_.back().push_back({narrowest_common(crossings(machine, slots[first - 1], slots[first]),
                                                 crossings(machine, slots[next], slots[next - 1])),
                                narrowest_common(crossings(machine, slots[next - 1], slots[next]),
                                                 crossings(machine, slots[first], slots[first - 1]))});
  }
}

}  // namespace convoy
