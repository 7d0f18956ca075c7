// SPDX-License-Identifier: MIT
#include "sim/replay/round_classes.h"

#include <algorithm>

#include "sim/replay/colours.h"

namespace convoy::inline replays {
namespace {

/// The number of each colour, in the order in which they first occur, and where that is.
struct Numbered {
  std::vector<std::uint32_t> number, first;
};

Numbered numbered(const std::vector<Colour>& colours) {
  ColourTable known;
  Numbered result;
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    result.number.push_back(known.number(colours[i]));
    if (result.number.back() == result.first.size()) result.first.push_back(i);
  }
  return result;
}

}  // namespace

RoundClasses round_classes(std::span<const double> bytes, std::span<const std::span<const LinkUse>> routes,
                           std::span<const double> link_bandwidth_Bps) {
  std::vector<Colour> flow_colours(bytes.size()), link_colours;
  for (const double bandwidth_Bps : link_bandwidth_Bps) link_colours.push_back(mix(bits(bandwidth_Bps)));
  Numbered links = numbered(link_colours);
  for (std::size_t classes_before = 0; links.first.size() > classes_before;) {
    classes_before = links.first.size();
    std::vector<Colour> crossing(link_colours.size(), 0);
    for (std::size_t f = 0; f < bytes.size(); ++f) {
      Colour crossed = 0;
      for (const LinkUse& use : routes[f]) crossed += mix(link_colours[use.link], use.multiplicity);
      flow_colours[f] = mix(bits(bytes[f]), crossed);
      for (const LinkUse& use : routes[f]) crossing[use.link] += mix(flow_colours[f], use.multiplicity);
    }
    for (std::size_t l = 0; l < link_colours.size(); ++l) link_colours[l] = mix(link_colours[l], crossing[l]);
    links = numbered(link_colours);
  }

  Numbered flows = numbered(flow_colours);
  RoundClasses result{std::move(flows.number), {}, {}, {}};
  for (const std::uint32_t link : links.first) result.link_bandwidth_Bps.push_back(link_bandwidth_Bps[link]);
  for (const std::uint32_t f : flows.first) {
    result.bytes.push_back(bytes[f]);
    result.routes.emplace_back();
  }
  // A class takes from a link of a class what all of its flows do that cross the first link of that class.
  for (std::size_t f = 0; f < bytes.size(); ++f)
    for (const LinkUse& use : routes[f]) {
      const std::uint32_t link_class = links.number[use.link];
      if (links.first[link_class] != use.link) continue;
      std::vector<LinkUse>& route = result.routes[result.class_of[f]];
      const auto known = std::ranges::find(route, link_class, &LinkUse::link);
      if (known == route.end())
        route.push_back({link_class, use.multiplicity});
      else
        known->multiplicity += use.multiplicity;
    }
  return result;
}

}  // namespace convoy::replays
