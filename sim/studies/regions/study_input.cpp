// SPDX-License-Identifier: MIT
#include "sim/studies/regions/study_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/quantity.h"
#include "sim/results/json_writer.h"

namespace convoy::inline studies {

std::optional<Dimension> dimension_of(const YamlNode& value) {
  std::string why;
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bandwidth, Dimension::time, Dimension::flop_rate, Dimension::power,
        Dimension::price, Dimension::fraction, Dimension::frequency})
    if (!parse_number(value.scalar) && parse_quantity(value.scalar, dimension, why)) return dimension;
  return std::nullopt;
}

std::optional<double> number_of(const YamlNode& value) {
  if (value.kind != YamlNode::Kind::scalar) return std::nullopt;
  std::string why;
  if (const std::optional<Dimension> dimension = dimension_of(value))
    return parse_quantity(value.scalar, *dimension, why);
  return value.quoted ? std::nullopt : parse_number(value.scalar);  // "10" in quotes is a name
}

bool StudyInput::is_ordered() const {
  if (is_range()) return true;
  std::optional<double> before;
  for (const YamlNode& value : values) {
    const std::optional<double> number = number_of(value);
    if (!number || (before && *number <= *before)) return false;
    before = number;
  }
  return values.size() > 1;
}

std::size_t StudyInput::levels() const {
  if (!is_range()) return values.size();
  return whole ? static_cast<std::size_t>(high - low) + 1 : 0;
}

namespace {

/// Of a whole range, whose numbers take equal parts of it, or of its logarithm.
double whole_edge(const StudyInput& input, double number) {
  const double end = input.high + 1;
  return input.log ? std::log(number / input.low) / std::log(end / input.low)
                   : (number - input.low) / (end - input.low);
}

double range_number(const StudyInput& input, double position) {
  const double high = input.whole ? input.high + 1 : input.high;
  const double number = input.log ? input.low * std::pow(high / input.low, position)
                                  : input.low + (high - input.low) * position;
  if (!input.whole) return std::clamp(number, input.low, input.high);
  constexpr double rounding = 1e-9;  // the edge of a number belongs to it
  return std::clamp(std::floor(number * (1 + rounding)), input.low, input.high);
}

std::size_t list_index(const StudyInput& input, double position) {
  const auto count = static_cast<double>(input.values.size());
  return static_cast<std::size_t>(std::clamp(std::floor(position * count), 0.0, count - 1));
}

}  // namespace

double StudyInput::position_of_level(std::size_t level) const {
  const auto at = static_cast<double>(level);
  if (!is_range()) return (at + 0.5) / static_cast<double>(values.size());
  return 0.5 * (whole_edge(*this, low + at) + whole_edge(*this, low + at + 1));
}

YamlNode StudyInput::value_at(double position) const {
  if (!is_range()) return values[list_index(*this, position)];
  YamlNode value;
  value.kind = YamlNode::Kind::scalar;
  value.pos = value.key_pos = pos;
  // Five digits: what is told is what was computed, and nobody states more.
  const double written = range_number(*this, position) / unit_size;
  value.scalar = whole ? shortest(written) : shortest(std::stod(fmt::format("{:.5g}", written))) + unit;
  return value;
}

std::optional<double> StudyInput::number_at(double position) const { return number_of(value_at(position)); }

std::string StudyInput::text_at(double position) const {
  if (!is_range()) return to_flow(value_at(position));
  const double number = range_number(*this, position) / unit_size;
  const std::string text = whole ? shortest(number) : fmt::format("{:.3g}", number);
  return unit.empty() || unit == "%" ? text + unit : text + ' ' + unit;
}

double StudyInput::distance_from_middle(double position) const {
  return is_ordered() ? std::abs(2 * position - 1) : 0;
}

}  // namespace convoy::studies
