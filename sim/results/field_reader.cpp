// SPDX-License-Identifier: MIT
#include "sim/results/field_reader.h"

#include <cmath>

#include "sim/results/json_writer.h"

namespace convoy::inline results {
namespace {

/// Of what is above 0. Whoever divides by a number below it, or takes a power of ten below it, may get none.
constexpr double smallest_result = 1e-100;

}  // namespace

void read_signed(const Json& value, const JsonPlace& place, double& number) {
  if (!value.is_number()) throw JsonError(place, fmt::format("expected a number, not {}", kind_of(value)));
  number = value.get<double>();
  if (number > largest_result || number < -largest_result)
    throw JsonError(place, "a number that large is no result");
  if (number != 0 && std::abs(number) < smallest_result)
    throw JsonError(place, "a number that small is no result");
}

void read_value(const Json& value, const JsonPlace& place, double& number) {
  read_signed(value, place, number);
  if (number < 0) throw JsonError(place, "expected a number that is not below zero");
}

void read_value(const Json& value, const JsonPlace& place, std::int64_t& number) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
    throw JsonError(place, "expected a whole number that is not below zero");
  number = value.get<std::int64_t>();
}

void read_value(const Json& value, const JsonPlace& place, std::uint64_t& number) {
  // written as the signed number of the same bits
  if (!value.is_number_integer()) throw JsonError(place, "expected a whole number");
  number = static_cast<std::uint64_t>(value.get<std::int64_t>());
}

void read_value(const Json& value, const JsonPlace& place, bool& truth) {
  if (!value.is_boolean())
    throw JsonError(place, fmt::format("expected true or false, not {}", kind_of(value)));
  truth = value.get<bool>();
}

void read_value(const Json& value, const JsonPlace& place, std::string& text) {
  if (!value.is_string()) throw JsonError(place, fmt::format("expected text, not {}", kind_of(value)));
  text = value.get<std::string>();
}

YamlNode yaml_of_json(const Json& value) {
  YamlNode node;
  switch (value.type()) {
    case Json::value_t::null:
      return node;
    case Json::value_t::array:
      node.kind = YamlNode::Kind::sequence;
      for (const Json& item : value) node.items.push_back(yaml_of_json(item));
      return node;
    case Json::value_t::object:
      node.kind = YamlNode::Kind::mapping;
      for (const auto& [name, content] : value.items())
        node.entries.emplace_back(name, yaml_of_json(content));
      return node;
    default:
      break;
  }
  node.kind = YamlNode::Kind::scalar;
  node.quoted = value.is_string();
  node.scalar = value.is_string()    ? value.get<std::string>()
                : value.is_boolean() ? (value.get<bool>() ? "true" : "false")
                                     : yaml_spelling(value.get<double>());
  return node;
}

}  // namespace convoy::results
