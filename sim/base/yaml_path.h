// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "sim/base/yaml_node.h"

namespace convoy::inline base {

/// The value at a dotted path, which is read as set_path reads it; nullptr if there is none.
const YamlNode* find_path(const YamlNode& root, std::string_view dotted_path);

}  // namespace convoy::base
