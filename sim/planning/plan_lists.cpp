// SPDX-License-Identifier: MIT
#include "sim/planning/plan_lists.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/names.h"

namespace convoy::inline planning {

std::vector<const YamlNode*> list_items(YamlMap& map, std::string_view key) {
  const YamlNode& node = map.node(key);
  if (node.kind != YamlNode::Kind::sequence) return {&node};
  if (node.items.empty()) map.fail(key, "the list is empty");
  std::vector<const YamlNode*> items;
  for (const YamlNode& item : node.items) items.push_back(&item);
  return items;
}

std::vector<std::size_t> read_choices(YamlMap& map, std::string_view key,
                                      const std::vector<std::string>& allowed) {
  std::vector<std::size_t> found;
  for (const YamlNode* item : list_items(map, key)) {
    const std::string text = read_text(*item, map.path_of(key));
    const auto at = std::find(allowed.begin(), allowed.end(), meant(text, allowed));
    if (at == allowed.end())
      throw InputError(item->pos, fmt::format("{}: '{}'{}; allowed are {}", map.path_of(key), text,
                                              suggestion(text, allowed), list_of(allowed)));
    found.push_back(static_cast<std::size_t>(at - allowed.begin()));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::int64_t> read_numbers(YamlMap& map, std::string_view key, std::int64_t most) {
  std::vector<std::int64_t> values;
  for (const YamlNode* item : list_items(map, key))
    values.push_back(read_integer(*item, map.path_of(key), 1, most));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace convoy::planning
