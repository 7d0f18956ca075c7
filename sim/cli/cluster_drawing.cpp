// SPDX-License-Identifier: MIT
#include "sim/cli/cluster_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "sim/base/quantity.h"
#include "sim/cli/draw_cluster.h"

namespace convoy::inline cli {
namespace {

constexpr std::size_t most_in_row = 16;

/// Cables between two devices are lines of their own, not places that two lines lead to.
void draw_pairs_as_lines(ClusterDrawing& drawing) {
  std::vector<std::vector<std::size_t>> ends(drawing.places.size());
  for (const auto& [a, b] : drawing.joins) ends[a].push_back(b), ends[b].push_back(a);
  std::vector<std::size_t> number(drawing.places.size());
  std::vector<DrawnPlace> kept;
  for (std::size_t p = 0; p < drawing.places.size(); ++p) {
    DrawnPlace& place = drawing.places[p];
    const bool pair = !place.device && ends[p].size() == 2 && drawing.places[ends[p][0]].device &&
                      drawing.places[ends[p][1]].device;
    number[p] = pair ? std::numeric_limits<std::size_t>::max() : kept.size();
    if (pair)
      drawing.cables.push_back({ends[p][0], ends[p][1], fmt::format("{}, {}", place.name, place.detail)});
    else
      kept.push_back(std::move(place));
  }
  std::set<std::pair<std::size_t, std::size_t>> joins;
  for (const auto& [a, b] : drawing.joins)
    if (std::max(number[a], number[b]) < kept.size()) joins.insert(std::minmax(number[a], number[b]));
  drawing.places = std::move(kept);
  drawing.joins = std::move(joins);
}

/// The places of a layer that are joined to each other, `seed` among them: those with most joins first. NICs
/// of one host need only be joined to those of all other hosts.
std::vector<std::size_t> all_joined(const ClusterDrawing& drawing, std::size_t seed,
                                    const std::vector<std::vector<std::size_t>>& beside) {
  std::set<std::size_t> near(beside[seed].begin(), beside[seed].end());
  for (const std::size_t other : beside[seed]) near.insert(beside[other].begin(), beside[other].end());
  near.erase(seed);
  std::vector<std::size_t> candidates(near.begin(), near.end());
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](std::size_t a, std::size_t b) { return beside[a].size() > beside[b].size(); });
  std::vector<std::size_t> group{seed};
  for (const std::size_t c : candidates) {
    bool joined_to_others = false, fits = true;
    for (const std::size_t member : group) {
      const bool joined = drawing.joins.contains(std::minmax(member, c));
      const bool of_host = drawing.places[member].host != Link::no_host &&
                           drawing.places[member].host == drawing.places[c].host;
      joined_to_others = joined_to_others || (joined && !of_host);
      fits = fits && (joined || of_host);
    }
    const bool with_all = std::all_of(group.begin(), group.end(), [&](std::size_t member) {
      return drawing.joins.contains(std::minmax(member, c));
    });
    if (with_all || (fits && joined_to_others)) group.push_back(c);
  }
  return group;
}

/// Ports of a switch that limits nothing are each joined to all others: lines to a switch tell it better.
void draw_switches(ClusterDrawing& drawing) {
  constexpr std::size_t fewest_ports = 3;
  std::vector<std::vector<std::size_t>> beside(drawing.places.size());
  for (const auto& [a, b] : drawing.joins)
    if (drawing.places[a].layer > 0 && drawing.places[a].layer == drawing.places[b].layer)
      beside[a].push_back(b), beside[b].push_back(a);
  const std::size_t ports = drawing.places.size();
  for (std::size_t seed = 0; seed < ports; ++seed) {
    const std::vector<std::size_t> group = all_joined(drawing, seed, beside);
    if (group.size() < fewest_ports) continue;
    const std::size_t hub = drawing.places.size();
    drawing.places.push_back({"switch", "no limit", false, Link::no_host, drawing.places[seed].layer + 1});
    for (const std::size_t a : group) {
      for (const std::size_t b : group) drawing.joins.erase(std::minmax(a, b));
      drawing.joins.insert(std::minmax(a, hub));
    }
  }
}

/// Room between two neighbouring boxes of a row, or beside the outermost.
struct Gap {
  double low, high;
  double distance(double x) const { return std::max({low - x, x - high, 0.0}); }
};

std::vector<std::vector<Gap>> gaps_of_rows(const ClusterDrawing& drawing) {
  constexpr double margin = 2;  // from a box to the next line
  std::vector<std::vector<double>> middles(drawing.rows);
  for (const DrawnPlace& place : drawing.places) middles[place.row].push_back(place.x);
  std::vector<std::vector<Gap>> gaps(drawing.rows);
  for (std::size_t row = 0; row < drawing.rows; ++row) {
    std::sort(middles[row].begin(), middles[row].end());
    double low = margin;
    for (const double x : middles[row]) {
      gaps[row].push_back({low, x - ClusterDrawing::box_width / 2 - margin});
      low = x + ClusterDrawing::box_width / 2 + margin;
    }
    gaps[row].push_back({low, drawing.width - margin});
  }
  return gaps;
}

/// Lanes for the lines through a gap: each as near to where it wants to be as the others beside it allow.
void keep_apart(std::vector<double*> lanes, const Gap& gap) {
  constexpr double comfortable = 5;
  std::stable_sort(lanes.begin(), lanes.end(), [](const double* a, const double* b) { return *a < *b; });
  const double apart = std::min(
      comfortable, (gap.high - gap.low) / static_cast<double>(std::max<std::size_t>(lanes.size(), 1)));
  double least = gap.low;
  for (double* x : lanes) least = (*x = std::clamp(*x, least, std::max(least, gap.high))) + apart;
  double most = gap.high;
  for (auto x = lanes.rbegin(); x != lanes.rend(); ++x) most = (** x = std::min(**x, most)) - apart;
}

bool has_box_between(const ClusterDrawing& drawing, const DrawnPlace& a, const DrawnPlace& b) {
  return std::any_of(drawing.places.begin(), drawing.places.end(), [&](const DrawnPlace& place) {
    return place.row == a.row && place.x > std::min(a.x, b.x) && place.x < std::max(a.x, b.x);
  });
}

}  // namespace

std::size_t drawn_device_count(const Machine& machine) {
  return std::min(machine.devices.size(), max_drawn_devices);
}

ClusterDrawing drawing_of(const Machine& machine) {
  ClusterDrawing drawing;
  const std::size_t devices = drawn_device_count(machine);
  if (devices < machine.devices.size())
    drawing.note = fmt::format("the first {} of {} devices", devices, machine.devices.size());
  for (std::size_t d = 0; d < devices; ++d)
    drawing.places.push_back({machine.devices[d].name, machine.device_types[machine.devices[d].type].name,
                              true, machine.devices[d].host});
  std::map<std::uint32_t, std::size_t> place_of;  // by port
  Route route;
  for (std::uint32_t a = 0; a < devices; ++a)
    for (std::uint32_t b = 0; b < devices; ++b) {
      machine.router->route(a, b, route);
      std::size_t before = a;
      for (std::size_t i = 0; i < route.links.size(); ++i) {
        const Link& link = machine.links[route.links[i]];
        const auto [known, is_new] = place_of.emplace(link.port, drawing.places.size());
        const std::size_t layer = std::min(i + 1, route.links.size() - i);
        if (is_new)
          drawing.places.push_back(
              {port_name(link), format_bandwidth(link.bandwidth_Bps), false, link.host, layer});
        drawing.places[known->second].layer = std::min(drawing.places[known->second].layer, layer);
        drawing.joins.insert(std::minmax(before, known->second));
        before = known->second;
      }
      if (before != b) drawing.joins.insert(std::minmax<std::size_t>(before, b));
    }
  draw_pairs_as_lines(drawing);
  draw_switches(drawing);
  return drawing;
}

void lay_out(ClusterDrawing& drawing) {
  std::size_t layers = 0, widest = 1;
  for (const DrawnPlace& place : drawing.places) layers = std::max(layers, place.layer + 1);
  std::vector<std::vector<std::size_t>> below(drawing.places.size());
  for (const auto& [a, b] : drawing.joins) {
    if (drawing.places[a].layer < drawing.places[b].layer) below[b].push_back(a);
    if (drawing.places[b].layer < drawing.places[a].layer) below[a].push_back(b);
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t p = 0; p < drawing.places.size(); ++p) {
      if (drawing.places[p].layer != layer) continue;
      double sum = 0;
      for (const std::size_t other : below[p]) sum += drawing.places[other].rank;
      const auto of_device = static_cast<double>(p);
      order.emplace_back(below[p].empty() ? of_device : sum / static_cast<double>(below[p].size()), p);
    }
    std::sort(order.begin(), order.end());
    const std::size_t in_row = std::min(order.size(), most_in_row);
    for (std::size_t i = 0; i < order.size(); ++i) {
      DrawnPlace& place = drawing.places[order[i].second];
      place.rank = (static_cast<double>(i) + 0.5) / static_cast<double>(order.size());
      place.row = drawing.rows + i / in_row;
      const std::size_t here = std::min(in_row, order.size() - i / in_row * in_row);
      place.x = (static_cast<double>(i % in_row) + 0.5) / static_cast<double>(here);
    }
    drawing.rows += order.empty() ? 0 : (order.size() - 1) / in_row + 1;
    widest = std::max(widest, in_row);
  }
  drawing.width = ClusterDrawing::cell_width * static_cast<double>(widest);
  for (DrawnPlace& place : drawing.places) place.x *= drawing.width;
}

std::vector<DrawnLine> lines_of(const ClusterDrawing& drawing) {
  const std::vector<std::vector<Gap>> gaps = gaps_of_rows(drawing);
  std::vector<DrawnLine> lines;
  lines.reserve(drawing.joins.size());
  for (const auto& [a, b] : drawing.joins) {
    const bool upwards = drawing.places[a].row <= drawing.places[b].row;
    DrawnLine line{upwards ? a : b, upwards ? b : a, {}};
    const DrawnPlace &from = drawing.places[line.from], &to = drawing.places[line.to];
    line.over = from.row == to.row && has_box_between(drawing, from, to);
    for (std::size_t row = from.row + 1; row < to.row; ++row) {
      const double share = static_cast<double>(row - from.row) / static_cast<double>(to.row - from.row);
      line.passages.push_back({row, from.x + share * (to.x - from.x)});
    }
    lines.push_back(std::move(line));
  }
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double*>> lanes;  // by row and gap
  for (DrawnLine& line : lines)
    for (Passage& passage : line.passages) {
      const std::vector<Gap>& row = gaps[passage.row];
      const auto nearest = std::min_element(row.begin(), row.end(), [&](const Gap& a, const Gap& b) {
        return a.distance(passage.x) < b.distance(passage.x);
      });
      lanes[{passage.row, static_cast<std::size_t>(nearest - row.begin())}].push_back(&passage.x);
    }
  for (auto& [place, xs] : lanes) keep_apart(xs, gaps[place.first][place.second]);
  return lines;
}

}  // namespace convoy::cli
