// SPDX-License-Identifier: MIT
#include "sim/base/data_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

namespace convoy::inline base {
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

const std::vector<std::string>& data_names(const std::string& folder) {
  static std::map<std::string, std::vector<std::string>> names_of;
  const auto found = names_of.find(folder);
  if (found != names_of.end()) return found->second;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_path(folder)))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names_of.emplace(folder, std::move(names)).first->second;
}

const YamlNode& data_yaml(const std::string& folder, const std::string& name) {
  static std::map<std::pair<std::string, std::string>, YamlNode> files;
  const auto found = files.find({folder, name});
  if (found != files.end()) return found->second;
  YamlNode node = load_yaml(fmt::format("{}/{}.yaml", data_path(folder), name));
  return files.emplace(std::pair{folder, name}, std::move(node)).first->second;
}

}  // namespace convoy::base
