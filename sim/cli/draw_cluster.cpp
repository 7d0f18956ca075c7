// SPDX-License-Identifier: MIT
#include "sim/cli/draw_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "sim/cli/cluster_drawing.h"

namespace convoy::inline cli {
namespace {

using Style = JsonWriter::Style;

/// Text inside an XML element.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

/// Turns places of a drawing into those of an SVG picture, whose y runs downwards.
class Canvas {
 public:
  explicit Canvas(const ClusterDrawing& drawing) : drawing_(drawing) {}

  double height() const { return ClusterDrawing::cell_height * static_cast<double>(drawing_.rows) + 20; }
  double y(std::size_t row) const {
    return height() - ClusterDrawing::cell_height * (static_cast<double>(row) + 0.5);
  }

  std::string path_of(const DrawnLine& line) const {
    const DrawnPlace &from = drawing_.places[line.from], &to = drawing_.places[line.to];
    if (line.over) return bow(from, to, -1);
    if (from.row == to.row) return fmt::format("M{:.1f} {:.1f} H{:.1f}", from.x, y(from.row), to.x);
    constexpr double edge = ClusterDrawing::box_height / 2, clear = edge + 4;  // slanted only between rows
    std::string path = fmt::format("M{:.1f} {:.1f}", from.x, y(from.row) - edge);
    for (const Passage& passage : line.passages)
      path += fmt::format(" L{0:.1f} {1:.1f} L{0:.1f} {2:.1f}", passage.x, y(passage.row) + clear,
                          y(passage.row) - clear);
    return path + fmt::format(" L{:.1f} {:.1f}", to.x, y(to.row) + edge);
  }

  /// A bow between two places below (side 1) or above (-1) their boxes, deeper where they are farther apart.
  std::string bow(const DrawnPlace& a, const DrawnPlace& b, double side) const {
    const double foot = side * ClusterDrawing::box_height / 2;
    const double deepest = (ClusterDrawing::cell_height - ClusterDrawing::box_height) / 2 - 2;
    const double depth = side * std::min(deepest, 10 + 0.018 * std::abs(a.x - b.x));
    return fmt::format("M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, y(a.row) + foot, (a.x + b.x) / 2,
                       (y(a.row) + y(b.row)) / 2 + foot + 2 * depth, b.x, y(b.row) + foot);
  }

 private:
  const ClusterDrawing& drawing_;
};

}  // namespace

void write_cluster_dot(std::ostream& out, const Machine& machine) {
  const ClusterDrawing drawing = drawing_of(machine);
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
  ClusterDrawing drawing = drawing_of(machine);
  lay_out(drawing);
  const Canvas canvas(drawing);
  out << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"10\" text-anchor=\"middle\">\n",
      drawing.width, canvas.height());
  if (!drawing.note.empty())
    out << fmt::format("<text x=\"{:.0f}\" y=\"14\">{}</text>\n", drawing.width / 2, escaped(drawing.note));
  for (const DrawnLine& line : lines_of(drawing))
    out << fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#888\"/>\n", canvas.path_of(line));
  for (const DrawnCable& cable : drawing.cables)
    out << fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#7a9b3c\"><title>{}</title></path>\n",
                       canvas.bow(drawing.places[cable.a], drawing.places[cable.b], 1), escaped(cable.text));
  for (const DrawnPlace& place : drawing.places) {
    const double y = canvas.y(place.row);
    out << fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"{}\" fill=\"{}\" "
        "stroke=\"#333\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        place.x - ClusterDrawing::box_width / 2, y - ClusterDrawing::box_height / 2,
        ClusterDrawing::box_width, ClusterDrawing::box_height, place.device ? 0 : 12,
        place.device ? "#dce9f7" : "#f7f3dc", place.x, y - 3, escaped(place.name), place.x, y + 10,
        escaped(place.detail));
  }
  out << "</svg>\n";
}

void write_bandwidth_matrix(JsonWriter& json, const Machine& machine) {
  const auto devices = static_cast<std::uint32_t>(drawn_device_count(machine));
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

}  // namespace convoy::cli
