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
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <streambuf>
#include <thread>

namespace convoy::inline runs {
namespace fs = std::filesystem;
namespace {

/// Files by which a folder of results is recognised, and how they begin.
constexpr std::array<std::pair<const char*, std::string_view>, 3> marks{
    {{"results.json", "\"schema\": \"convoy.results/"}, {"plan.json", "\"schema\": \"convoy.plan/"},
     {"study.json", "\"schema\": \"convoy.study/"}}};
constexpr std::array<const char*, 7> result_files{"results.json", "results.csv", "report.html", "trace.json",
                                                  "monitor.csv",  "plan.json",   "study.json"};
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

bool is_result_folder(int folder) {
  constexpr std::size_t start = 200;
  const bool marked = std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    const std::optional<std::string> text = start_of_file_at(folder, mark.first, start);
    return text && text->find(mark.second) != std::string::npos;
  });
  if (marked) return true;
  // Left by a run that ended early; folders in it belong to its variants.
  const std::vector<std::string> names = names_in(folder);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    if (is_own_name(name)) return true;
    const Descriptor inner = open_folder_at(folder, name.c_str());
    return inner && is_result_folder(inner.get());
  });
}

std::string reason() { return errno ? std::strerror(errno) : "unknown error"; }

Descriptor open_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) throw OutputError(fmt::format("{}: {}", path, reason()));
  return folder;
}

/// Writes files that do not exist yet, and waits until they are on the disk. If that fails, returns the name of a file
/// that failed and sets errno; otherwise nullptr.
const char* write_files(int folder, const OutputFolder::Files& files) {
  std::vector<__gnu_cxx::stdio_filebuf<char>> buffers;
  std::vector<std::unique_ptr<std::ostream>> streams;
  OutputFolder::Streams out;
  for (const char* name : files.names) {
    Descriptor file = make_file_at(folder, name);
    if (!file) return name;
    buffers.emplace_back(file.release(), std::ios::out | std::ios::binary);
  }
  for (__gnu_cxx::stdio_filebuf<char>& buffer : buffers)
    out.push_back(streams.emplace_back(std::make_unique<std::ostream>(&buffer)).get());
  errno = 0;
  files.write(out);
  for (std::size_t f = 0; f < out.size(); ++f)
    if (!out[f]->flush() || !synchronise(buffers[f].fd()) || !buffers[f].close()) return files.names[f];
  return nullptr;
}

}  // namespace

void OutputFolder::check(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    // The nearest existing folder above it has to be writable.
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
  if (!is_result_folder(open_folder(path).get()))
    throw OutputError(
        fmt::format("{}: holds other files than convoy's results; choose another folder with --out", path));
}

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)) {
  check(path_);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw OutputError(fmt::format("{}: cannot be made: {}", path_, error.message()));
  folder_ = open_folder(path_);
  lock();
  remove_at(folder_.get(), unfinished_set);
  put_in_place();
}

OutputFolder::~OutputFolder() {
  if (lock_) ::unlinkat(folder_.get(), lock_file, 0);
}

void OutputFolder::lock() {
  // The workers of a process that was killed end a moment after it.
  for (const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);;) {
    Descriptor held(
        ::openat(folder_.get(), lock_file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!held) cannot_write(lock_file);
    if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
      const bool busy = errno == EWOULDBLOCK;
      const std::string why = reason();
      if (busy && std::chrono::steady_clock::now() < patience) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        continue;
      }
      throw OutputError(
          busy ? fmt::format("{}: another convoy is writing it; wait for that one, or choose another "
                             "folder with --out",
                             path_)
               : fmt::format("{}/{}: cannot be locked: {}", path_, lock_file, why));
    }
    // The previous holder of the lock may have removed the file that was locked here.
    struct stat locked {
    }, named{};
    if (::fstat(held.get(), &locked) != 0 ||
        ::fstatat(folder_.get(), lock_file, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
        locked.st_ino != named.st_ino)
      continue;
    lock_ = std::move(held);
    return;
  }
}

void OutputFolder::cannot_write(const char* name) const {
  throw OutputError(fmt::format("{}/{}: cannot be written: {}", path_, name, reason()));
}

void OutputFolder::make(const std::vector<Files>& files, bool all) const {
  const int folder = folder_.get();
  if (::mkdirat(folder, unfinished_set, 0777) != 0) cannot_write(unfinished_set);
  try {
    const Descriptor making = open_folder_at(folder, unfinished_set);
    if (!making) cannot_write(unfinished_set);
    std::string names = all ? "all\n" : "";
    std::vector<Files> written = files;
    written.emplace_back(list_of_names, [&](std::ostream& out) { out << names; });
    for (const Files& some : written) {
      if (const char* failed = write_files(making.get(), some)) cannot_write(failed);
      for (const char* name : some.names) names += name + std::string("\n");
    }
    if (!synchronise(making.get()) || ::renameat(folder, unfinished_set, folder, finished_set) != 0)
      cannot_write(unfinished_set);
  } catch (...) {
    remove_at(folder, unfinished_set);
    throw;
  }
  put_in_place();
}

/// Whatever a finished set says or contains, only files of results are taken from it, and put under their own
/// names.
void OutputFolder::put_in_place() const {
  constexpr std::size_t longest_list = 4096;
  const int folder = folder_.get();
  {
    const Descriptor made = open_folder_at(folder, finished_set);
    const std::optional<std::string> list =
        made ? start_of_file_at(made.get(), list_of_names, longest_list) : std::nullopt;
    std::istringstream lines(list.value_or(""));
    std::set<std::string> names;
    for (std::string name; std::getline(lines, name);) names.insert(name);
    for (const char* name : result_files) {
      if (names.contains(name)) {
        if (entry_at(made.get(), name) == EntryKind::file && ::renameat(made.get(), name, folder, name) != 0)
          cannot_write(name);
      } else if (names.contains("all")) {
        ::unlinkat(folder, name, 0);
      }
    }
    if (list && !synchronise(folder)) cannot_write(finished_set);
  }
  if (!remove_at(folder, finished_set)) cannot_write(finished_set);
}

void OutputFolder::replace_all(const std::vector<Files>& files) const { make(files, true); }
void OutputFolder::replace(const Files& files) const { make({files}, false); }

FileStream OutputFolder::open(const char* name) const {
  Descriptor file = open_file_at(folder_.get(), name);
  if (!file) throw OutputError(fmt::format("{}/{}: cannot be read: {}", path_, name, reason()));
  return FileStream(std::move(file));
}

bool OutputFolder::has(const char* name) const { return entry_at(folder_.get(), name) != EntryKind::none; }

void OutputFolder::replace_store(const std::function<void(const std::string& file)>& make_store) const {
  const int folder = folder_.get();
  const char* const store = store_files.front();
  if (!remove_at(folder, unfinished_set) || ::mkdirat(folder, unfinished_set, 0777) != 0)
    cannot_write(unfinished_set);
  try {
    make_store(fmt::format("{}/{}/{}", path_, unfinished_set, store));
    const Descriptor making = open_folder_at(folder, unfinished_set);
    const Descriptor made = making ? open_file_at(making.get(), store) : Descriptor();
    if (!made || !synchronise(made.get())) cannot_write(unfinished_set);
    for (const char* name : store_files)  // logs of the old store, which must not be applied to another one
      if (name != store && ::unlinkat(folder, name, 0) != 0 && errno != ENOENT) cannot_write(name);
    if (::renameat(making.get(), store, folder, store) != 0 || !synchronise(folder)) cannot_write(store);
  } catch (...) {
    remove_at(folder, unfinished_set);
    throw;
  }
  remove_at(folder, unfinished_set);
}

void OutputFolder::remove_store() const {
  for (const char* name : store_files)
    if (::unlinkat(folder_.get(), name, 0) != 0 && errno != ENOENT)
      throw OutputError(fmt::format("{}/{}: cannot be removed: {}", path_, name, reason()));
}

namespace {

/// Standard output. After the first write that fails the rest is dropped, and the reason is kept: errno does
/// not last until whoever writes looks at the stream.
class StandardOutput final : public std::streambuf {
 public:
  StandardOutput() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }
  int error() const { return error_; }  ///< of the first write that failed; 0: none

 private:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }

  int sync() override {
    const char* from = pbase();
    while (error_ == 0 && from < pptr()) {
      const ssize_t written = ::write(STDOUT_FILENO, from, static_cast<std::size_t>(pptr() - from));
      if (written >= 0)
        from += written;
      else if (errno != EINTR)
        error_ = errno;
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0 ? 0 : -1;
  }

  std::array<char, 1 << 16> buffer_;
  int error_ = 0;
};

}  // namespace

void write_stdout(const std::function<void(std::ostream&)>& content) {
  StandardOutput buffer;
  std::ostream out(&buffer);
  content(out);
  out.flush();
  if (buffer.error() != 0 && buffer.error() != EPIPE)  // a reader that has seen enough, such as head
    throw OutputError(fmt::format("standard output: {}", std::strerror(buffer.error())));
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& content) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  if (out) content(out);
  if (!out.flush()) throw OutputError(fmt::format("{}: cannot be written: {}", path, reason()));
}

void refuse_input(const std::string& path, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code none;
    if (fs::equivalent(path, input, none))
      throw OutputError(fmt::format("{}: cannot be written: it is read, as {}", path, input));
  }
}

}  // namespace convoy::runs
