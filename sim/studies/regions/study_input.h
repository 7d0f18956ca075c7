// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/yaml_node.h"

namespace convoy::inline studies {

/// What is not known of an experiment, with the values that it may have. Where an input stands is told by a
/// position in [0, 1]: in a range from its lower to its upper end, in a list from the first value to the last,
/// each of which takes an equal part.
struct StudyInput {
  std::string name, because;
  std::vector<std::string> sets;  ///< dotted paths that get its value
  std::vector<YamlNode> values;   ///< of a list; empty for a range
  double low = 0, high = 0;       ///< ends of a range, in SI units
  double unit_size = 1;           ///< of the unit in which a range's values are written
  std::string unit;               ///< "Gbps"; "" for plain numbers
  bool log = false;               ///< positions are even in the logarithm
  bool whole = false;             ///< only whole numbers
  SourcePos pos;

  bool is_range() const { return values.empty(); }
  /// Whether its values are numbers in ascending order, so that "up to" has a meaning.
  bool is_ordered() const;
  /// How many different values it has; 0 for a range without gaps.
  std::size_t levels() const;
  /// In the middle of the part that a value takes. @pre level < levels()
  double position_of_level(std::size_t level) const;
  /// @param position in [0, 1]
  YamlNode value_at(double position) const;
  /// In SI units; nothing for a name. Of a plain number the number.
  std::optional<double> number_at(double position) const;
  /// For people: "12.3 Gbps", "resnet50".
  std::string text_at(double position) const;
  /// How far from the middle, 0 to 1; 0 for names, none of which is nearer than another.
  double distance_from_middle(double position) const;
};

/// Of a quantity; nothing for a plain number or another text.
std::optional<Dimension> dimension_of(const YamlNode& value);
/// A number or quantity in SI units; nothing for other values.
std::optional<double> number_of(const YamlNode& value);

}  // namespace convoy::studies
