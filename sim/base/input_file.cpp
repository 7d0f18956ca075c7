// SPDX-License-Identifier: MIT
#include "sim/base/input_file.h"

#include <fcntl.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sim/base/data_path.h"
#include "sim/base/digest.h"

namespace convoy::inline base {
namespace {

InputRecord* innermost = nullptr;

bool is_program_data(const std::string& file) {
  static const std::vector<std::string> folders = [] {
    std::vector<std::string> paths;
    for (const char* folder : digested_data_folders) paths.push_back(data_path(folder) + '/');
    return paths;
  }();
  for (const std::string& folder : folders)
    if (file.starts_with(folder)) return true;
  return false;
}

std::string digest_of(const std::string& file) {
  std::error_code error;
  // Something other than a regular file (a pipe) cannot be read a second time.
  if (!std::filesystem::is_regular_file(file, error)) return "no file";
  std::ifstream in(file, std::ios::binary);
  if (!in) return "not readable";
  Sha256 digest;
  std::vector<char> block(std::size_t{1} << 16);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    digest.add({block.data(), static_cast<std::size_t>(in.gcount())});
  return digest.text();
}

}  // namespace

void note_input(const std::string& file) {
  if (!innermost || is_program_data(file)) return;
  const std::string digest = digest_of(file);
  for (InputRecord* record = innermost; record; record = record->outer_)
    record->files_.emplace_back(file, digest);
}

std::string InputRecord::digests() const {
  std::string lines;
  for (const auto& [file, digest] : files_) lines += digest + '\n';
  return lines;
}

std::ifstream open_input(const std::string& file, std::ios::openmode mode) {
  note_input(file);
  return std::ifstream(file, mode);
}

int open_input_descriptor(const std::string& file) {
  note_input(file);
  return ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
}

InputRecord::InputRecord() : outer_(innermost) { innermost = this; }
InputRecord::~InputRecord() { innermost = outer_; }

}  // namespace convoy::base
