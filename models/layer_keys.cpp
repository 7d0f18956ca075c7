// SPDX-License-Identifier: MIT
#include "models/layer_keys.h"

#include <fmt/format.h>

#include <array>

namespace convoy::inline models {
namespace {

/// Whole numbers in [min, max] of a list. @param expected what the list is, for messages
std::vector<std::int64_t> read_sizes(YamlMap& map, std::string_view key, const char* expected,
                                     std::int64_t min, std::int64_t max) {
  const YamlNode& list = map.node(key);
  const bool is_list = list.kind == YamlNode::Kind::sequence;
  if (!is_list || list.items.empty() || list.items.size() > max_axes)
    map.fail(key, fmt::format("expected {}, found {}", expected,
                              is_list ? fmt::format("a list of {}", list.items.size()) : describe(list)));
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < list.items.size(); ++i)
    sizes.push_back(read_integer(list.items[i], fmt::format("{}[{}]", map.path_of(key), i), min, max));
  return sizes;
}

/// One whole number for all sides, or a list of one a side. @param sides "[height, width]"
template <std::size_t Sides>
std::array<std::int64_t, Sides> read_sides(YamlMap& map, std::string_view key, std::int64_t min,
                                           std::string_view sides) {
  const YamlNode& node = map.node(key);
  std::array<std::int64_t, Sides> sizes;
  if (node.kind == YamlNode::Kind::scalar) {
    sizes.fill(map.integer(key, min, max_size));
    return sizes;
  }
  if (node.kind != YamlNode::Kind::sequence || node.items.size() != Sides)
    map.fail(key, fmt::format("expected a whole number or {}, found {}", sides, describe(node)));
  for (std::size_t i = 0; i < Sides; ++i)
    sizes[i] = read_integer(node.items[i], fmt::format("{}[{}]", map.path_of(key), i), min, max_size);
  return sizes;
}

ValueForm sides_form(std::int64_t min, std::size_t count, std::string sides) {
  const ValueForm side = forms::whole(min, max_size);
  ValueForm each = forms::list(side, std::move(sides), count);
  each.max = static_cast<decltype(each.max)>(count);
  return forms::either({side, std::move(each)});
}

}  // namespace

Size2 read_size2(YamlMap& map, std::string_view key, std::int64_t min) {
  const auto [h, w] = read_sides<2>(map, key, min, "[height, width]");
  return {h, w};
}

ValueForm size2_form(std::int64_t min) { return sides_form(min, 2, "[height, width]"); }

Size3 read_size3(YamlMap& map, std::string_view key, std::int64_t min) {
  const auto [d, h, w] = read_sides<3>(map, key, min, "[depth, height, width]");
  return {d, h, w};
}

ValueForm size3_form(std::int64_t min) { return sides_form(min, 3, "[depth, height, width]"); }

ValueForm shape_form() { return forms::list(forms::whole(1, max_size), "a shape such as [64, 8, 8]", 1); }

Shape read_shape(YamlMap& map, std::string_view key) {
  return read_sizes(map, key, "a shape such as [64, 8, 8] or [1000]", 1, max_size);
}

std::vector<std::int64_t> read_axes(YamlMap& map, std::string_view key) {
  return read_sizes(map, key, "the axes of the input in their new order, such as [1, 2, 0]", 0, max_axes - 1);
}

}  // namespace convoy::models
