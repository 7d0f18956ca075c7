// SPDX-License-Identifier: MIT
#include "sim/base/data_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace convoy {
namespace fs = std::filesystem;

std::string data_path(const std::string& folder) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "convoy" / folder;
    if (fs::is_directory(installed, error)) return installed.string();
  }
  const fs::path source = fs::path(CONVOY_SOURCE_DIR) / folder;
  if (fs::is_directory(source, error)) return source.string();
  throw std::runtime_error(fmt::format("convoy's data folder '{}' is neither beside the program nor in {}",
                                       folder, CONVOY_SOURCE_DIR));
}

std::vector<std::string> data_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_path(folder)))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace convoy
