// SPDX-License-Identifier: MIT
#include "sim/cli/draw_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "sim/base/quantity.h"

namespace convoy {
namespace {

using Style = JsonWriter::Style;

constexpr std::size_t most_in_row = 16;

struct DrawnPlace {
  std::string name, detail;
  bool device = false;
  std::size_t layer = 0;  ///< 0: devices; cables by their distance from the nearest device
  std::size_t row = 0;    ///< of the picture, from below
  double rank = 0;        ///< in its layer from left to right, all rows one after the other: 0 to 1
  double x = 0;           ///< as a share of the width
};

/// A cable that joins two devices and nothing else.
struct DrawnCable {
  std::size_t a, b;
  std::string text;
};

struct Drawing {
  std::vector<DrawnPlace> places;  ///< devices first
  std::vector<DrawnCable> cables;
  std::set<std::pair<std::size_t, std::size_t>> joins;  ///< the smaller number first
  std::string note;                                     ///< "" where all devices are drawn
};

std::size_t drawn_devices(const Machine& machine) {
  return std::min(machine.devices.size(), max_drawn_devices);
}

/// Cables between two devices are lines of their own, not places that two lines lead to.
void draw_pairs_as_lines(Drawing& drawing) {
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

Drawing drawing_of(const Machine& machine) {
  Drawing drawing;
  const std::size_t devices = drawn_devices(machine);
  if (devices < machine.devices.size())
    drawing.note = fmt::format("the first {} of {} devices", devices, machine.devices.size());
  for (std::size_t d = 0; d < devices; ++d)
    drawing.places.push_back(
        {machine.devices[d].name, machine.device_types[machine.devices[d].type].name, true});
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
          drawing.places.push_back({port_name(link), format_bandwidth(link.bandwidth_Bps), false, layer});
        drawing.places[known->second].layer = std::min(drawing.places[known->second].layer, layer);
        drawing.joins.insert(std::minmax(before, known->second));
        before = known->second;
      }
      if (before != b) drawing.joins.insert(std::minmax<std::size_t>(before, b));
    }
  draw_pairs_as_lines(drawing);
  return drawing;
}

/// Places of a layer evenly over the width, in rows of at most `most_in_row`, in the order of the mean of
/// what they are joined to below.
void lay_out(Drawing& drawing) {
  std::size_t layers = 0, rows = 0;
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
      place.row = rows + i / in_row;
      const std::size_t here = std::min(in_row, order.size() - i / in_row * in_row);
      place.x = (static_cast<double>(i % in_row) + 0.5) / static_cast<double>(here);
    }
    rows += order.empty() ? 0 : (order.size() - 1) / in_row + 1;
  }
}

/// Text inside an XML element.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

void write_cluster_dot(std::ostream& out, const Machine& machine) {
  const Drawing drawing = drawing_of(machine);
  out << "graph cluster {\n  layout=neato; overlap=false; splines=true;\n";
  if (!drawing.note.empty()) out << fmt::format("  label=\"{}\";\n", drawing.note);
  for (std::size_t p = 0; p < drawing.places.size(); ++p)
    out << fmt::format("  p{} [shape={}, label=\"{}\\n{}\"];\n", p,
                       drawing.places[p].device ? "box" : "ellipse", drawing.places[p].name,
                       drawing.places[p].detail);
  for (const auto& [a, b] : drawing.joins) out << fmt::format("  p{} -- p{};\n", a, b);
  for (const DrawnCable& cable : drawing.cables)
    out << fmt::format("  p{} -- p{} [label=\"{}\"];\n", cable.a, cable.b, cable.text);
  out << "}\n";
}

void write_cluster_svg(std::ostream& out, const Machine& machine) {
  Drawing drawing = drawing_of(machine);
  lay_out(drawing);
  std::map<std::size_t, std::size_t> in_row;
  for (const DrawnPlace& place : drawing.places) ++in_row[place.row];
  std::size_t widest = 1;
  for (const auto& [row, count] : in_row) widest = std::max(widest, count);
  constexpr double cell_width = 130, cell_height = 90, box_height = 34;
  const double width = cell_width * static_cast<double>(widest);
  const double height = cell_height * static_cast<double>(in_row.size()) + 20;
  const auto x = [&](const DrawnPlace& place) { return place.x * width; };
  const auto y = [&](const DrawnPlace& place) {
    return height - cell_height * (static_cast<double>(place.row) + 0.5);
  };
  out << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"10\" text-anchor=\"middle\">\n",
      width, height);
  if (!drawing.note.empty())
    out << fmt::format("<text x=\"{:.0f}\" y=\"14\">{}</text>\n", width / 2, escaped(drawing.note));
  for (const auto& [a, b] : drawing.joins)
    out << fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#888\"/>\n",
                       x(drawing.places[a]), y(drawing.places[a]), x(drawing.places[b]),
                       y(drawing.places[b]));
  for (const DrawnCable& cable : drawing.cables) {
    const DrawnPlace &a = drawing.places[cable.a], &b = drawing.places[cable.b];
    // A bow below the devices, deeper where they are farther apart; `title` shows when it is pointed at.
    const double foot = box_height / 2;
    const double depth = std::min((cell_height - box_height) / 2 - 2, 10 + 0.018 * std::abs(x(a) - x(b)));
    out << fmt::format(
        "<path d=\"M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" "
        "stroke=\"#7a9b3c\"><title>{}</title></path>\n",
        x(a), y(a) + foot, (x(a) + x(b)) / 2, (y(a) + y(b)) / 2 + foot + 2 * depth, x(b), y(b) + foot,
        escaped(cable.text));
  }
  for (const DrawnPlace& place : drawing.places)
    out << fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"{}\" fill=\"{}\" "
        "stroke=\"#333\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        x(place) - cell_width / 2 + 6, y(place) - box_height / 2, cell_width - 12, box_height,
        place.device ? 0 : 12, place.device ? "#dce9f7" : "#f7f3dc", x(place), y(place) - 3,
        escaped(place.name), x(place), y(place) + 10, escaped(place.detail));
  out << "</svg>\n";
}

void write_bandwidth_matrix(JsonWriter& json, const Machine& machine) {
  const auto devices = static_cast<std::uint32_t>(drawn_devices(machine));
  json.key("matrix_devices");
  json.begin_array(Style::compact);
  for (std::uint32_t d = 0; d < devices; ++d) json.value(machine.devices[d].name);
  json.end_array();
  Route route;
  const auto write = [&](const char* name, auto value_of) {
    json.key(name);
    json.begin_array();
    for (std::uint32_t a = 0; a < devices; ++a) {
      json.begin_array(Style::compact);
      for (std::uint32_t b = 0; b < devices; ++b) {
        machine.router->route(a, b, route);
        const double value = value_of(route);
        std::isfinite(value) ? json.value(value) : json.null();
      }
      json.end_array();
    }
    json.end_array();
  };
  write("bandwidth_Bps", [&](const Route& way) {
    double least = std::numeric_limits<double>::infinity();
    for (const LinkId link : way.links) least = std::min(least, machine.links[link].bandwidth_Bps);
    return least;
  });
  write("latency_s", [](const Route& way) { return way.latency_s; });
}

}  // namespace convoy
