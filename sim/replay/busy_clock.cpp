// SPDX-License-Identifier: MIT
#include "sim/replay/busy_clock.h"

#include <algorithm>
#include <limits>
#include <map>

namespace convoy::inline replays {

LinkClock::LinkClock(const Machine& machine, const Folding& folding)
    : link_clock_(folding.links.size(), Folding::none) {
  std::uint32_t port_count = 0;
  for (const Link& link : machine.links) port_count = std::max(port_count, link.port + 1);
  std::vector<std::vector<std::uint32_t>> link_classes(port_count);
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (folding.link_class[l] != Folding::none)
      link_classes[machine.links[l].port].push_back(folding.link_class[l]);

  std::uint32_t clocks = 0;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::vector<std::uint32_t>> ports_of(folding.links.size());  // clocks by link class
  port_clock_.assign(port_count, Folding::none);
  for (std::uint32_t port = 0; port < port_count; ++port) {
    std::vector<std::uint32_t>& classes = link_classes[port];
    if (classes.empty()) continue;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    const auto [it, fresh] = known.try_emplace(classes);
    if (fresh) {
      for (const std::uint32_t c : classes)
        if (link_clock_[c] == Folding::none) link_clock_[c] = clocks++;
      it->second = clocks++;
      for (const std::uint32_t c : classes) ports_of[c].push_back(it->second);
    }
    port_clock_[port] = it->second;
  }
  for (std::uint32_t& clock : link_clock_)  // connections have no port
    if (clock == Folding::none) clock = clocks++;
  clocks_.resize(clocks);
  is_port_.assign(clocks, true);
  for (const std::uint32_t clock : link_clock_) is_port_[clock] = false;

  for (const std::vector<LinkUse>& route : folding.flow_route) {
    first_of_flow_.push_back(static_cast<std::uint32_t>(of_flow_.size()));
    for (const LinkUse& use : route) {
      of_flow_.push_back(link_clock_[use.link]);
      of_flow_.insert(of_flow_.end(), ports_of[use.link].begin(), ports_of[use.link].end());
    }
  }
  first_of_flow_.push_back(static_cast<std::uint32_t>(of_flow_.size()));
}

void LinkClock::flow_begins(std::uint32_t flow_class, double now_s) {
  for_each(flow_class, [&](std::uint32_t clock) {
    take_foreseen(clock, now_s);
    clocks_[clock].enter(now_s);
  });
}

void LinkClock::flow_ends(std::uint32_t flow_class, double now_s) {
  for_each(flow_class, [&](std::uint32_t clock) {
    take_foreseen(clock, now_s);
    clocks_[clock].leave(now_s);
  });
}

void LinkClock::flow_foreseen(std::uint32_t flow_class, double begin_s, double end_s, double now_s) {
  if (foreseen_.empty()) foreseen_.resize(clocks_.size());
  for_each(flow_class, [&](std::uint32_t clock) {
    if (!is_port_[clock]) {
      clocks_[clock].add(end_s - begin_s);
      return;
    }
    take_foreseen(clock, now_s);
    foreseen_[clock].add(begin_s, end_s);
  });
}

void LinkClock::take_foreseen(std::uint32_t clock, double now_s) {
  if (foreseen_.empty()) return;
  foreseen_[clock].take(now_s, [&](double at_s, bool begins) {
    begins ? clocks_[clock].enter(at_s) : clocks_[clock].leave(at_s);
  });
}

void LinkClock::take_foreseen() {
  for (std::uint32_t clock = 0; clock < foreseen_.size(); ++clock)
    take_foreseen(clock, std::numeric_limits<double>::infinity());
}

std::vector<double> LinkClock::link_busy_s(double now_s) const {
  std::vector<double> result;
  for (const std::uint32_t clock : link_clock_) result.push_back(clocks_[clock].total_s(now_s));
  return result;
}

std::vector<double> LinkClock::port_busy_s(double now_s) const {
  std::vector<double> result;
  for (const std::uint32_t clock : port_clock_)
    result.push_back(clock == Folding::none ? 0.0 : clocks_[clock].total_s(now_s));
  return result;
}

}  // namespace convoy::replays
