// SPDX-License-Identifier: MIT
#include "sim/run/sweep_points.h"

#include <sstream>

#include "sim/base/input_error.h"
#include "sim/run/shared_node.h"

namespace convoy::inline runs {
namespace {

// The first line of a text.
constexpr std::string_view product_line = "product", list_line = "list";

}  // namespace

SweepPoints SweepPoints::product_of(std::vector<Axis> axes) {
  SweepPoints points;
  for (const auto& [path, values] : axes) points.size_ *= values.size();
  points.points_ = std::move(axes);
  return points;
}

SweepPoints SweepPoints::listed(std::vector<Coordinates> points) {
  SweepPoints all;
  all.size_ = points.size();
  all.points_ = std::move(points);
  return all;
}

SweepPoints::Coordinates SweepPoints::at(std::size_t position) const {
  if (const auto* listed = std::get_if<std::vector<Coordinates>>(&points_)) return (*listed)[position];
  const auto& axes = std::get<std::vector<Axis>>(points_);
  Coordinates coordinates(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto& [path, values] = axes[a];
    coordinates[a] = {path, values[position % values.size()]};
    position /= values.size();
  }
  return coordinates;
}

std::size_t SweepPoints::place_of(std::string_view part, std::size_t position) const {
  const auto* axes = std::get_if<std::vector<Axis>>(&points_);
  if (axes == nullptr) return position;
  std::size_t place = 0, combinations = 1;
  for (std::size_t a = axes->size(); a-- > 0;) {
    const auto& [path, values] = (*axes)[a];
    if (first_step(path) == part) {
      place += combinations * (position % values.size());
      combinations *= values.size();
    }
    position /= values.size();
  }
  return place;
}

bool SweepPoints::has_axes() const {
  const auto* axes = std::get_if<std::vector<Axis>>(&points_);
  return axes != nullptr && !axes->empty();
}

std::string SweepPoints::fingerprint() const {
  std::string text;
  if (const auto* listed = std::get_if<std::vector<Coordinates>>(&points_)) {
    for (const Coordinates& point : *listed) {
      text += '\n';
      for (const auto& [path, value] : point) text += path + ':' + runs::fingerprint(value);
    }
    return text;
  }
  for (const auto& [path, values] : std::get<std::vector<Axis>>(points_)) {
    text += '\n' + path + ':';
    for (const YamlNode& value : values) text += runs::fingerprint(value);
  }
  return text;
}

// A line for each axis or point: a document of YAML has limits, which a long list would exceed.
std::string SweepPoints::text() const {
  if (const auto* listed = std::get_if<std::vector<Coordinates>>(&points_)) {
    std::string text(list_line);
    for (const Coordinates& point : *listed) text += '\n' + to_yaml(mapping_of(point));
    return text;
  }
  std::string text(product_line);
  for (const auto& [path, values] : std::get<std::vector<Axis>>(points_)) {
    YamlNode list;
    list.kind = YamlNode::Kind::sequence;
    list.items = values;
    text += '\n' + to_yaml(mapping_of({{path, std::move(list)}}));
  }
  return text;
}

SweepPoints SweepPoints::from_text(const std::string& text) {
  const auto wrong = [] { return InputError({"sweep", 0, 0}, "is no list of points"); };
  std::istringstream in(text);
  std::string kind, line;
  std::getline(in, kind);
  if (kind != product_line && kind != list_line) throw wrong();
  std::vector<Coordinates> lines;
  while (std::getline(in, line)) lines.push_back(parse_yaml(line, "sweep").entries);
  if (kind == list_line) return listed(std::move(lines));
  std::vector<Axis> axes;
  for (Coordinates& axis : lines) {
    if (axis.size() != 1 || axis.front().second.items.empty()) throw wrong();
    axes.emplace_back(std::move(axis.front().first), std::move(axis.front().second.items));
  }
  return product_of(std::move(axes));
}

YamlNode mapping_of(SweepPoints::Coordinates coordinates) {
  YamlNode node;
  node.kind = YamlNode::Kind::mapping;
  node.entries = std::move(coordinates);
  return node;
}

std::string_view first_step(std::string_view path) { return path.substr(0, path.find('.')); }

}  // namespace convoy::runs
