// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/base/yaml_map.h"

namespace convoy::inline base {

/// The path of `file` relative to the folder of the file in which `pos` lies; an absolute path is returned as
/// it is.
std::string beside(const SourcePos& pos, const std::string& file);

/// The path of the file that a key names; the key must be present. @throws InputError at the key
std::string named_file(YamlMap& map, std::string_view key);

}  // namespace convoy::base
