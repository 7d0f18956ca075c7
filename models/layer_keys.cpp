// SPDX-License-Identifier: MIT
#include "models/layer_keys.h"

#include <fmt/format.h>

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

}  // namespace

Size2 read_size2(YamlMap& map, std::string_view key, std::int64_t min) {
  const YamlNode& node = map.node(key);
  if (node.kind == YamlNode::Kind::scalar) {
    const std::int64_t both = map.integer(key, min, max_size);
    return {both, both};
  }
  if (node.kind != YamlNode::Kind::sequence || node.items.size() != 2)
    map.fail(key, fmt::format("expected a whole number or [height, width], found {}", describe(node)));
  const auto item = [&](std::size_t i) {
    return read_integer(node.items[i], fmt::format("{}[{}]", map.path_of(key), i), min, max_size);
  };
  return {item(0), item(1)};
}

ValueForm size2_form(std::int64_t min) {
  const ValueForm side = forms::whole(min, max_size);
  ValueForm both = forms::list(side, "[height, width]", 2);
  both.max = 2;
  return forms::either({side, std::move(both)});
}

ValueForm shape_form() { return forms::list(forms::whole(1, max_size), "a shape such as [64, 8, 8]", 1); }

Shape read_shape(YamlMap& map, std::string_view key) {
  return read_sizes(map, key, "a shape such as [64, 8, 8] or [1000]", 1, max_size);
}

std::vector<std::int64_t> read_axes(YamlMap& map, std::string_view key) {
  return read_sizes(map, key, "the axes of the input in their new order, such as [1, 2, 0]", 0, max_axes - 1);
}

}  // namespace convoy::models
