// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

/// A file under a short name, for error messages, in a folder of this process alone (cases run side by side),
/// which is the working folder as long as this object is there.
class WorkingFile {
 public:
  WorkingFile(const char* file, const std::string& text) : name(file) {
    std::filesystem::create_directory(folder_);
    std::filesystem::current_path(folder_);
    std::ofstream(name, std::ios::binary) << text;
  }
  ~WorkingFile() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  WorkingFile(const WorkingFile&) = delete;
  WorkingFile& operator=(const WorkingFile&) = delete;

  const char* const name;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("convoy-working-{}", ::getpid());
};
