// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/yaml_map.h"

namespace convoy::inline planning {

/// The items of a list, or the one value that stands for a list of one. @throws InputError: an empty list
std::vector<const YamlNode*> list_items(YamlMap& map, std::string_view key);

/// Indices of those of `allowed` that a list names, ascending, each once. @throws InputError
std::vector<std::size_t> read_choices(YamlMap& map, std::string_view key,
                                      const std::vector<std::string>& allowed);

/// Whole numbers from 1 to `most` of a list, ascending, each once. @throws InputError
std::vector<std::int64_t> read_numbers(YamlMap& map, std::string_view key, std::int64_t most);

}  // namespace convoy::planning
