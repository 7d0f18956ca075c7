// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/yaml_node.h"

namespace convoy::inline runs {

/// What the points of a sweep set, by position: the product of lists, or points one by one.
class SweepPoints {
 public:
  /// Of one point: dotted paths and their values.
  using Coordinates = std::vector<std::pair<std::string, YamlNode>>;
  /// A dotted path, and the values that it takes; never none.
  using Axis = std::pair<std::string, std::vector<YamlNode>>;

  /// A single point that sets nothing.
  SweepPoints() = default;
  /// All combinations, the last axis changing fastest.
  static SweepPoints product_of(std::vector<Axis> axes);
  static SweepPoints listed(std::vector<Coordinates> points);

  std::size_t size() const { return size_; }
  Coordinates at(std::size_t position) const;
  /// Which of the values that the sweep gives a part (`strategy`) a point has: two points with the same number have
  /// the same value.
  std::size_t place_of(std::string_view part, std::size_t position) const;
  /// Whether it is a product of at least one axis.
  bool has_axes() const;

  /// What tells it from other sweeps, in whichever way their values are written; "": it sets nothing.
  std::string fingerprint() const;
  /// Exact, for from_text.
  std::string text() const;
  /// @throws InputError: it is no text of a sweep
  static SweepPoints from_text(const std::string& text);

 private:
  std::variant<std::vector<Axis>, std::vector<Coordinates>> points_;
  std::size_t size_ = 1;
};

/// A mapping of the paths to their values.
YamlNode mapping_of(SweepPoints::Coordinates coordinates);

/// "cluster" of "cluster.nodes.0.count".
std::string_view first_step(std::string_view path);

}  // namespace convoy::runs
