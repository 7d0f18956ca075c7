// SPDX-License-Identifier: MIT
#include "sim/base/named_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace convoy::inline base {

namespace fs = std::filesystem;

std::string beside(const SourcePos& pos, const std::string& file) {
  return (fs::path(pos.file).parent_path() / file).lexically_normal().string();
}

std::string named_file(YamlMap& map, std::string_view key) {
  std::string file = beside(map.pos(key), map.text(key));
  if (!fs::is_regular_file(file)) map.fail(key, fmt::format("there is no file '{}'", file));
  return file;
}

}  // namespace convoy::base
