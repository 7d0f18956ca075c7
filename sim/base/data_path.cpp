// SPDX-License-Identifier: MIT
#include "sim/base/data_path.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/base/data_folder.h"

namespace convoy::inline base {
namespace fs = std::filesystem;

namespace {

/// The folder of what holds this code: the program, or the Python module in a program of others.
struct OwnFolder {
  fs::path path;
  bool module = false;
};
OwnFolder own_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || !info.dli_fname) return {program};
  const fs::path object = fs::canonical(info.dli_fname, error);
  return object.extension() == ".so" ? OwnFolder{object.parent_path(), true} : OwnFolder{program};
}

std::string& given_folder() {
  static std::string folder;
  return folder;
}

}  // namespace

void use_data_folder(std::string folder) { given_folder() = std::move(folder); }

std::string program_beside(const std::string& name) {
  const OwnFolder here = own_folder();
  std::error_code error;
  // The module is in build/python/convoy, or in lib/python3/dist-packages/convoy.
  for (const char* way : {here.module ? "../.." : ".", here.module ? "../../../../bin" : "."})
    if (const fs::path program = (here.path / way / name).lexically_normal();
        fs::is_regular_file(program, error))
      return program.string();
  return "";
}

std::string data_path(const std::string& folder) {
  const OwnFolder here = own_folder();
  std::error_code error;
  if (const fs::path given = fs::path(given_folder()) / folder;
      !given_folder().empty() && fs::is_directory(given, error))
    return given.string();
  const fs::path installed =
      (here.path / (here.module ? "../../../../share" : "../share") / "convoy" / folder).lexically_normal();
  if (fs::is_directory(installed, error)) return installed.string();
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
