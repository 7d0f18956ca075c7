// SPDX-License-Identifier: MIT
#include "sim/replay/busy_clock.h"

#include <algorithm>
#include <map>

namespace convoy {

LinkClock::LinkClock(const Machine& machine, const Folding& folding)
    : folding_(folding), link_count_(folding.links.size()) {
  std::uint32_t port_count = 0;
  for (const Link& link : machine.links) port_count = std::max(port_count, link.port + 1);
  std::vector<std::vector<std::uint32_t>> link_classes(port_count);
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (folding.link_class[l] != Folding::none)
      link_classes[machine.links[l].port].push_back(folding.link_class[l]);

  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> crossings;  // link class and clock
  port_clock_.assign(port_count, Folding::none);
  for (std::uint32_t port = 0; port < port_count; ++port) {
    std::vector<std::uint32_t>& classes = link_classes[port];
    if (classes.empty()) continue;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    const auto [it, fresh] = known.emplace(classes, static_cast<std::uint32_t>(link_count_ + known.size()));
    port_clock_[port] = it->second;
    if (fresh)
      for (const std::uint32_t link_class : classes) crossings.emplace_back(link_class, it->second);
  }
  std::sort(crossings.begin(), crossings.end());
  first_port_.assign(link_count_ + 1, 0);
  for (const auto& [link_class, clock] : crossings) ++first_port_[link_class + 1], ports_.push_back(clock);
  for (std::size_t l = 0; l < link_count_; ++l) first_port_[l + 1] += first_port_[l];
  clocks_.resize(link_count_ + known.size());
}

void LinkClock::flow_begins(std::uint32_t flow_class, double now_s) {
  for_each(flow_class, [&](std::uint32_t clock) { clocks_[clock].enter(now_s); });
}

void LinkClock::flow_ends(std::uint32_t flow_class, double now_s) {
  for_each(flow_class, [&](std::uint32_t clock) { clocks_[clock].leave(now_s); });
}

std::vector<double> LinkClock::link_busy_s(double now_s) const {
  std::vector<double> result;
  for (std::size_t l = 0; l < link_count_; ++l) result.push_back(clocks_[l].total_s(now_s));
  return result;
}

std::vector<double> LinkClock::port_busy_s(double now_s) const {
  std::vector<double> result;
  for (const std::uint32_t clock : port_clock_)
    result.push_back(clock == Folding::none ? 0.0 : clocks_[clock].total_s(now_s));
  return result;
}

}  // namespace convoy
