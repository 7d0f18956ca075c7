// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/base/yaml_map.h"

namespace convoy::inline base {

/// `file` beside the file that `pos` stands in; an absolute path as it is.
std::string beside(const SourcePos& pos, const std::string& file);

/// The path of the file that a key names; it must be there. @throws InputError at the key
std::string named_file(YamlMap& map, std::string_view key);

}  // namespace convoy::base
