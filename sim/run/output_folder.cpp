// SPDX-License-Identifier: MIT
#include "sim/run/output_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace convoy {
namespace fs = std::filesystem;
namespace {

/// Files that tell a folder of results, and what they begin with.
constexpr std::array<std::pair<const char*, std::string_view>, 2> marks{
    {{"results.json", "\"schema\": \"convoy.results/"}, {"plan.json", "\"schema\": \"convoy.plan/"}}};

bool is_result_folder(const fs::path& path) {
  return std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    std::ifstream in(path / mark.first);
    std::string start(200, '\0');
    in.read(start.data(), static_cast<std::streamsize>(start.size()));
    return start.find(mark.second) != std::string::npos;
  });
}

std::string reason() { return errno ? std::strerror(errno) : "unknown error"; }

}  // namespace

void OutputFolder::check(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    // The nearest folder above that exists has to be writable.
    fs::path above = fs::absolute(path).lexically_normal();
    while (above.has_relative_path() && !fs::exists(above, error)) above = above.parent_path();
    if (!fs::is_directory(above, error))
      throw OutputError(fmt::format("{}: {} is not a folder", path, above.string()));
    if (::access(above.c_str(), W_OK | X_OK) != 0)
      throw OutputError(fmt::format("{}: cannot be made: {}: {}", path, above.string(), reason()));
    return;
  }
  if (!fs::is_directory(status))
    throw OutputError(fmt::format("{}: is not a folder; --out names a folder", path));
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0)
    throw OutputError(fmt::format("{}: {}", path, reason()));
  if (!fs::is_empty(path, error) && !is_result_folder(path))
    throw OutputError(
        fmt::format("{}: holds other files than convoy's results; choose another folder with --out", path));
}

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)) {
  check(path_);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw OutputError(fmt::format("{}: cannot be made: {}", path_, error.message()));
}

void OutputFolder::write(const std::string& name, const std::function<void(std::ostream&)>& content) {
  const fs::path target = fs::path(path_) / name;
  const fs::path unfinished = fs::path(path_) / fmt::format(".{}.{}", name, ::getpid());
  errno = 0;
  std::ofstream out(unfinished, std::ios::binary | std::ios::trunc);
  if (out) content(out);
  out.close();
  std::error_code error;
  if (!out) {
    const std::string why = reason();
    fs::remove(unfinished, error);
    throw OutputError(fmt::format("{}: cannot be written: {}", target.string(), why));
  }
  fs::rename(unfinished, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(unfinished, error);
    throw OutputError(fmt::format("{}: cannot be written: {}", target.string(), why));
  }
}

void OutputFolder::remove(const std::string& name) {
  std::error_code error;
  fs::remove(fs::path(path_) / name, error);
  if (error) throw OutputError(fmt::format("{}/{}: cannot be removed: {}", path_, name, error.message()));
}

void write_stdout(const std::function<void(std::ostream&)>& content) {
  errno = 0;
  content(std::cout);
  std::cout.flush();
  if (!std::cout) throw OutputError(fmt::format("standard output: {}", reason()));
}

}  // namespace convoy
