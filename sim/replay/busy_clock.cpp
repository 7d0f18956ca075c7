// SPDX-License-Identifier: MIT
#include "sim/replay/busy_clock.h"

#include <algorithm>
#include <map>

namespace convoy {

LinkClock::LinkClock(const Machine& machine, const Folding& folding)
    : folding_(folding), links_(folding.links.size()), port_classes_of_link_(folding.links.size()) {
  std::uint32_t port_count = 0;
  for (const Link& link : machine.links) port_count = std::max(port_count, link.port + 1);
  std::vector<std::vector<std::uint32_t>> link_classes(port_count);
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (folding.link_class[l] != Folding::none)
      link_classes[machine.links[l].port].push_back(folding.link_class[l]);

  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  port_class_.assign(port_count, Folding::none);
  for (std::uint32_t port = 0; port < port_count; ++port) {
    std::vector<std::uint32_t>& classes = link_classes[port];
    if (classes.empty()) continue;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    const auto [it, fresh] = known.emplace(classes, static_cast<std::uint32_t>(known.size()));
    port_class_[port] = it->second;
    if (fresh)
      for (const std::uint32_t link_class : classes) port_classes_of_link_[link_class].push_back(it->second);
  }
  ports_.resize(known.size());
}

void LinkClock::flow_begins(std::uint32_t flow_class, double now_s) {
  for (const LinkUse& use : folding_.flow_route[flow_class]) {
    links_[use.link].enter(now_s);
    for (const std::uint32_t port : port_classes_of_link_[use.link]) ports_[port].enter(now_s);
  }
}

void LinkClock::flow_ends(std::uint32_t flow_class, double now_s) {
  for (const LinkUse& use : folding_.flow_route[flow_class]) {
    links_[use.link].leave(now_s);
    for (const std::uint32_t port : port_classes_of_link_[use.link]) ports_[port].leave(now_s);
  }
}

std::vector<double> LinkClock::link_busy_s(double now_s) const {
  std::vector<double> result;
  for (const BusyTime& link : links_) result.push_back(link.total_s(now_s));
  return result;
}

std::vector<double> LinkClock::port_busy_s(double now_s) const {
  std::vector<double> result;
  for (const std::uint32_t port : port_class_)
    result.push_back(port == Folding::none ? 0.0 : ports_[port].total_s(now_s));
  return result;
}

}  // namespace convoy
