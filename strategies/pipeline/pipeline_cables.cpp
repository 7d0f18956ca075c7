// SPDX-License-Identifier: MIT
// What lies between the slots of a pipeline: cables to the next stage, rings of replicas, links that both
// ends share.
#include <algorithm>
#include <limits>

#include "strategies/pipeline/pipeline_costs.h"

namespace convoy::inline strategies {

namespace {

/// The way from a device to another, by itself.
PipelineCosts::Cable way(const Machine& machine, EndpointId from, EndpointId to) {
  Route route;
  machine.router->route(from, to, route);
  PipelineCosts::Cable result{route.connection_Bps, route.latency_s};
  for (const LinkId link : route.links)
    result.bandwidth_Bps = std::min(result.bandwidth_Bps, machine.links[link].bandwidth_Bps);
  return result;
}

}  // namespace

const PipelineCosts::Cable& PipelineCosts::cable(std::uint32_t from, std::uint32_t to) const {
  const auto [known, fresh] = cables_.try_emplace({from, to});
  if (!fresh) return known->second;
  const std::vector<EndpointId>&senders = shape_.slots[from], &receivers = shape_.slots[to];
  known->second = way(machine_, senders.front(), receivers.front());
  double& bandwidth_Bps = known->second.bandwidth_Bps;
  for (const auto& [link, pipelines] : crossings(machine_, senders, receivers))
    bandwidth_Bps = std::min(bandwidth_Bps, machine_.links[link].bandwidth_Bps / pipelines);
  return known->second;
}

void PipelineCosts::add_rings() {
  const std::vector<std::vector<EndpointId>>& slots = shape_.slots;
  const auto slower = [](const Cable& a, const Cable& b) {
    return Cable{std::min(a.bandwidth_Bps, b.bandwidth_Bps), std::max(a.latency_s, b.latency_s)};
  };
  for (std::size_t first = 0; first < slots.size(); ++first) {
    const Cable none{std::numeric_limits<double>::infinity(), 0};
    Cable along = slots[first].size() < 2 ? none : way(machine_, slots[first][0], slots[first][1]);
    rings_.push_back({none, along});
    for (std::size_t last = first + 1; last < slots.size(); ++last) {
      along = slower(along, cable(static_cast<std::uint32_t>(last) - 1, static_cast<std::uint32_t>(last)));
      rings_.back().push_back(slower(along, way(machine_, slots[last].back(), slots[first].front())));
    }
  }
  add_shared_links(machine_);
}

/// How often pairs of equal positions in two slots cross each link on their way.
PipelineCosts::Crossings PipelineCosts::crossings(const Machine& machine, const std::vector<EndpointId>& from,
                                                  const std::vector<EndpointId>& to) {
  std::vector<LinkId> links;
  Route route;
  for (std::size_t r = 0; r < from.size(); ++r) {
    machine.router->route(from[r], to[r], route);
    links.insert(links.end(), route.links.begin(), route.links.end());
  }
  std::sort(links.begin(), links.end());
  Crossings result;
  for (const LinkId link : links) {
    if (result.empty() || result.back().first != link) result.emplace_back(link, 0);
    ++result.back().second;
  }
  return result;
}

double PipelineCosts::narrowest_common_Bps(const Machine& machine, const Crossings& a, const Crossings& b) {
  double result_Bps = std::numeric_limits<double>::infinity();
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    if (one->first == other->first)
      result_Bps = std::min(result_Bps,
                            machine.links[one->first].bandwidth_Bps / std::max(one->second, other->second));
    one->first < other->first ? ++one : ++other;
  }
  return result_Bps;
}

void PipelineCosts::add_shared_links(const Machine& machine) {
  const std::vector<std::vector<EndpointId>>& slots = shape_.slots;
  std::vector<Crossings> there(1), back(1);  // by q: from slot q - 1 to q, and from q to q - 1
  for (std::size_t q = 1; q < slots.size(); ++q) {
    there.push_back(crossings(machine, slots[q - 1], slots[q]));
    back.push_back(crossings(machine, slots[q], slots[q - 1]));
  }
  constexpr double none = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < slots.size(); ++first) {
    shared_.push_back({{none, none}});
    for (std::size_t next = first + 1; next < slots.size() && first > 0; ++next)
      shared_.back().push_back({narrowest_common_Bps(machine, there[first], back[next]),
                                narrowest_common_Bps(machine, there[next], back[first])});
  }
}

}  // namespace convoy::strategies
