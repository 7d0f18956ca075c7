// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

/// A file of its own in the folder for temporary files, removed with the object.
class WrittenFile {
 public:
  explicit WrittenFile(const std::string& text, const std::string& ending = ".csv")
      : path_(std::filesystem::temp_directory_path() / (fmt::format("convoy_{}", next_name()) + ending)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~WrittenFile() { std::filesystem::remove(path_); }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  static std::string next_name() {
    static int count = 0;
    return fmt::format("{}_{}", std::random_device()(), count++);  // a file name, nothing that is tested
  }
  std::filesystem::path path_;
};
