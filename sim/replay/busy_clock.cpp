// SPDX-License-Identifier: MIT
#include "sim/replay/busy_clock.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "sim/replay/colours.h"

namespace convoy::inline replays {
namespace {

/// Lists of numbers by owner, all in one vector: a vector for each of a million owners would take ten times the
/// memory of what is in it.
class NumberLists {
 public:
  struct Entry {
    std::uint32_t owner, number;
  };
  /// @param entries those of one owner stay in their order
  NumberLists(std::size_t owners, const std::vector<Entry>& entries)
      : begin_(owners + 1), numbers_(entries.size()) {
    for (const Entry& entry : entries) ++begin_[entry.owner + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (const Entry& entry : entries) numbers_[next[entry.owner]++] = entry.number;
  }
  std::span<const std::uint32_t> operator[](std::uint32_t owner) const {
    return {numbers_.data() + begin_[owner], numbers_.data() + begin_[owner + 1]};
  }

 private:
  std::vector<std::uint32_t> begin_, numbers_;
};

/// The link classes of each port, of links that are used.
NumberLists classes_of_ports(const Machine& machine, const Folding& folding, std::uint32_t port_count) {
  std::vector<NumberLists::Entry> entries;
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (folding.link_class[l] != Folding::none)
      entries.push_back({machine.links[l].port, folding.link_class[l]});
  return NumberLists(port_count, entries);
}

}  // namespace

LinkClock::LinkClock(const Machine& machine, const Folding& folding)
    : link_clock_(folding.links.size(), Folding::none) {
  std::uint32_t port_count = 0;
  for (const Link& link : machine.links) port_count = std::max(port_count, link.port + 1);

  std::uint32_t clocks = 0;
  std::vector<NumberLists::Entry> clocks_of_ports;  // by link class
  port_clock_.assign(port_count, Folding::none);
  {
    const NumberLists classes_of = classes_of_ports(machine, folding, port_count);
    ColourTable known;  // by the classes of their links
    std::vector<std::uint32_t> clock_of_known, classes;
    for (std::uint32_t port = 0; port < port_count; ++port) {
      classes.assign(classes_of[port].begin(), classes_of[port].end());
      if (classes.empty()) continue;
      std::sort(classes.begin(), classes.end());
      classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
      Colour colour = classes.size();
      for (const std::uint32_t c : classes) colour = mix(colour, c);
      const std::uint32_t number = known.number(colour);
      if (number == clock_of_known.size()) {
        for (const std::uint32_t c : classes)
          if (link_clock_[c] == Folding::none) link_clock_[c] = clocks++;
        for (const std::uint32_t c : classes) clocks_of_ports.push_back({c, clocks});
        clock_of_known.push_back(clocks++);
      }
      port_clock_[port] = clock_of_known[number];
    }
  }
  const NumberLists ports_of(folding.links.size(), clocks_of_ports);
  for (std::uint32_t& clock : link_clock_)  // connections have no port
    if (clock == Folding::none) clock = clocks++;
  is_port_.assign(clocks, true);
  for (const std::uint32_t clock : link_clock_) is_port_[clock] = false;

  first_of_route_.reserve(folding.routes.size() + 1);
  for (std::size_t c = 0; c < folding.routes.size(); ++c) {
    first_of_route_.push_back(static_cast<std::uint32_t>(of_route_.size()));
    for (const LinkUse& use : folding.routes[c]) {
      of_route_.push_back(link_clock_[use.link]);
      of_route_.insert(of_route_.end(), ports_of[use.link].begin(), ports_of[use.link].end());
    }
  }
  first_of_route_.push_back(static_cast<std::uint32_t>(of_route_.size()));
}

void LinkClock::flow_begins(std::uint32_t route_class, double now_s) {
  if (clocks_.empty()) clocks_.resize(size());
  take_foreseen_of_route(route_class, now_s);
  for_each(route_class, [&](std::uint32_t clock) { clocks_[clock].enter(now_s); });
}

void LinkClock::flow_ends(std::uint32_t route_class, double now_s) {
  take_foreseen_of_route(route_class, now_s);
  for_each(route_class, [&](std::uint32_t clock) { clocks_[clock].leave(now_s); });
}

void LinkClock::flow_foreseen(std::uint32_t route_class, double begin_s, double end_s, double now_s) {
  if (foreseen_.empty()) {
    foreseen_.resize(size());
    clocks_.resize(size());
  }
  for_each(route_class, [&](std::uint32_t clock) {
    if (!is_port_[clock]) {
      clocks_[clock].add(end_s - begin_s);
      return;
    }
    take_foreseen(clock, now_s);
    foreseen_[clock].add(begin_s, end_s);
  });
}

void LinkClock::take_foreseen_of_route(std::uint32_t route_class, double now_s) {
  if (foreseen_.empty()) return;
  for_each(route_class, [&](std::uint32_t clock) { take_foreseen(clock, now_s); });
}

/// @pre something has been foreseen
void LinkClock::take_foreseen(std::uint32_t clock, double now_s) {
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
  result.reserve(link_clock_.size());
  for (const std::uint32_t clock : link_clock_) result.push_back(total_s(clock, now_s));
  return result;
}

std::vector<double> LinkClock::port_busy_s(double now_s) const {
  std::vector<double> result;
  result.reserve(port_clock_.size());
  for (const std::uint32_t clock : port_clock_)
    result.push_back(clock == Folding::none ? 0.0 : total_s(clock, now_s));
  return result;
}

}  // namespace convoy::replays
