// SPDX-License-Identifier: MIT
#include "sim/run/store/store_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace convoy::inline runs {
namespace fs = std::filesystem;
namespace {

std::string made_folder() {
  std::string name = (fs::temp_directory_path() / "convoy-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw OutputError(fmt::format("{}: {}", name, std::strerror(errno)));
  return name;
}

void copy_file(int folder, const std::string& name, const std::string& shown, const std::string& to) {
  Descriptor file = open_file_at(folder, name.c_str());
  if (!file) throw OutputError(fmt::format("{}: cannot be read: {}", shown, std::strerror(errno)));
  FileStream in(std::move(file));
  std::ofstream out(to, std::ios::binary);
  if (in.peek() != std::char_traits<char>::eof()) out << in.rdbuf();
  out.close();
  if (!out) throw OutputError(fmt::format("{}: cannot be written: {}", to, std::strerror(errno)));
}

}  // namespace

StoreSource::StoreSource(const std::string& folder) : file_(folder + "/results.sqlite"), name_(file_) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) throw OutputError(fmt::format("{}: {}", folder, std::strerror(errno)));
  if (entry_at(opened.get(), "results.sqlite") == EntryKind::none)
    throw OutputError(fmt::format("{}: has no results.sqlite", folder));
  const bool writable = ::access(folder.c_str(), W_OK) == 0 && ::access(file_.c_str(), W_OK) == 0;
  if (writable) return;
  copy_ = made_folder();
  try {
    for (const std::string& ending : {std::string(), std::string("-wal")})
      if (const std::string name = "results.sqlite" + ending;
          ending.empty() || entry_at(opened.get(), name.c_str()) != EntryKind::none)
        copy_file(opened.get(), name, name_ + ending, copy_ + '/' + name);
  } catch (...) {
    std::error_code error;
    fs::remove_all(copy_, error);
    throw;
  }
  file_ = copy_ + "/results.sqlite";
}

StoreSource::~StoreSource() {
  std::error_code error;
  if (!copy_.empty()) fs::remove_all(copy_, error);
}

}  // namespace convoy::runs
