// SPDX-License-Identifier: MIT
#include "sim/run/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

namespace convoy::inline runs {
namespace fs = std::filesystem;
namespace {

/// Files that tell a folder of results, and what they begin with.
constexpr std::array<std::pair<const char*, std::string_view>, 2> marks{
    {{"results.json", "\"schema\": \"convoy.results/"}, {"plan.json", "\"schema\": \"convoy.plan/"}}};
constexpr std::array<const char*, 5> result_files{"results.json", "results.csv", "report.html", "trace.json",
                                                  "plan.json"};
constexpr std::array<const char*, 4> store_files{"results.sqlite", "results.sqlite-wal", "results.sqlite-shm",
                                                 "results.sqlite-journal"};
constexpr const char* unfinished_set = ".convoy-unfinished";  ///< being written: removed
constexpr const char* finished_set = ".convoy-finished";      ///< written as a whole: to be put in place
constexpr const char* lock_file = ".convoy-lock";
constexpr const char* pieces_folder = ".convoy-pieces";  ///< of sim/mpi
constexpr const char* list_of_names =
    "names";  ///< in a finished set: its files, and "all" where there are no others

bool is_own_name(const std::string& name) {
  if (std::find(result_files.begin(), result_files.end(), name) != result_files.end()) return true;
  if (std::find(store_files.begin(), store_files.end(), name) != store_files.end()) return true;
  return name == unfinished_set || name == finished_set || name == lock_file || name == pieces_folder;
}

bool is_result_folder(const fs::path& path) {
  const bool marked = std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    std::ifstream in(path / mark.first);
    std::string start(200, '\0');
    in.read(start.data(), static_cast<std::streamsize>(start.size()));
    return start.find(mark.second) != std::string::npos;
  });
  if (marked) return true;
  // What a run leaves that was ended early; folders in it are those of its variants.
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    const bool own = is_own_name(name) || (entry.is_directory(error) && is_result_folder(entry.path()));
    if (!own) return false;
  }
  return !error;
}

std::string reason() { return errno ? std::strerror(errno) : "unknown error"; }

[[noreturn]] void cannot_write(const fs::path& file, const std::string& why) {
  throw OutputError(fmt::format("{}: cannot be written: {}", file.string(), why));
}

/// Waits until a file or folder is on the disk.
void synchronise(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) cannot_write(path, reason());
  const bool done = ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP;  // some file systems have none
  const std::string why = reason();
  ::close(file);
  if (!done) cannot_write(path, why);
}

void write_file(const fs::path& file, const std::function<void(std::ostream&)>& content,
                const fs::path& shown) {
  errno = 0;
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (out) content(out);
  out.close();
  if (!out) cannot_write(shown, reason());
  synchronise(file);
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) cannot_write(to, reason());
}

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
  if (!is_result_folder(path))
    throw OutputError(
        fmt::format("{}: holds other files than convoy's results; choose another folder with --out", path));
}

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)) {
  check(path_);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw OutputError(fmt::format("{}: cannot be made: {}", path_, error.message()));
  lock();
  try {
    fs::remove_all(fs::path(path_) / unfinished_set, error);
    put_in_place();
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

OutputFolder::~OutputFolder() {
  ::unlink((path_ + '/' + lock_file).c_str());
  ::close(lock_);
}

void OutputFolder::lock() {
  const std::string file = path_ + '/' + lock_file;
  // Workers of one that was killed end a moment after it.
  for (const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);;) {
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock_ < 0) throw OutputError(fmt::format("{}: cannot be written: {}", file, reason()));
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      const bool held = errno == EWOULDBLOCK;
      const std::string why = reason();
      ::close(lock_);
      if (held && std::chrono::steady_clock::now() < patience) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      throw OutputError(
          held ? fmt::format("{}: another convoy is writing it; wait for that one, or choose another "
                             "folder with --out",
                             path_)
               : fmt::format("{}: cannot be locked: {}", file, why));
    }
    // Who held it before may have removed the file that was locked here.
    struct stat locked {
    }, named{};
    if (::fstat(lock_, &locked) == 0 && ::stat(file.c_str(), &named) == 0 && locked.st_ino == named.st_ino)
      return;
    ::close(lock_);
  }
}

void OutputFolder::make(const std::vector<File>& files, bool all) const {
  const fs::path folder = path_, making = folder / unfinished_set;
  std::error_code error;
  fs::create_directory(making, error);
  if (error) cannot_write(making, error.message());
  try {
    std::string names = all ? "all\n" : "";
    for (const auto& [name, content] : files) {
      write_file(making / name, content, folder / name);
      names += name + '\n';
    }
    write_file(
        making / list_of_names, [&](std::ostream& out) { out << names; }, folder / list_of_names);
    synchronise(making);
    rename_or_fail(making, folder / finished_set);
  } catch (...) {
    fs::remove_all(making, error);
    throw;
  }
  put_in_place();
}

void OutputFolder::put_in_place() const {
  const fs::path folder = path_, made = folder / finished_set;
  std::ifstream in(made / list_of_names);
  if (!in) return;
  bool all = false;
  std::vector<std::string> names;
  for (std::string name; std::getline(in, name);) name == "all" ? (void)(all = true) : names.push_back(name);
  for (const std::string& name : names)
    if (fs::exists(made / name)) rename_or_fail(made / name, folder / name);
  std::error_code error;
  for (const char* name : result_files)
    if (all && std::find(names.begin(), names.end(), name) == names.end()) fs::remove(folder / name, error);
  synchronise(folder);
  fs::remove_all(made, error);
}

void OutputFolder::replace_all(const std::vector<File>& files) const { make(files, true); }
void OutputFolder::replace(const File& file) const { make({file}, false); }

bool OutputFolder::has_store() const { return fs::exists(store()); }

void OutputFolder::remove_store() const {
  for (const char* name : store_files) {
    std::error_code error;
    fs::remove(fs::path(path_) / name, error);
    if (error) throw OutputError(fmt::format("{}/{}: cannot be removed: {}", path_, name, error.message()));
  }
}

void write_stdout(const std::function<void(std::ostream&)>& content) {
  errno = 0;
  content(std::cout);
  std::cout.flush();
  if (!std::cout) throw OutputError(fmt::format("standard output: {}", reason()));
}

}  // namespace convoy::runs
