// SPDX-License-Identifier: MIT
#include "sim/run/folder_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace convoy::inline runs {
namespace {

constexpr int never_astray = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

}  // namespace

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

EntryKind entry_at(int folder, const char* name) {
  struct stat status {};
  if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? EntryKind::none : EntryKind::other;
  if (S_ISREG(status.st_mode)) return EntryKind::file;
  return S_ISDIR(status.st_mode) ? EntryKind::folder : EntryKind::other;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  // A separate descriptor: fdopendir takes it over, and duplicates share its position in the folder.
  Descriptor again(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again) return names;
  DIR* listed = ::fdopendir(again.get());
  if (!listed) return names;
  again.release();
  while (const dirent* entry = ::readdir(listed)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(listed);
  return names;
}

Descriptor open_file_at(int folder, const char* name) {
  Descriptor file(::openat(folder, name, O_RDONLY | never_astray));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return {};
  if (S_ISREG(status.st_mode)) return file;
  errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  return {};
}

Descriptor open_folder_at(int folder, const char* name) {
  return Descriptor(::openat(folder, name, O_RDONLY | O_DIRECTORY | never_astray));
}

Descriptor make_file_at(int folder, const char* name) {
  return Descriptor(::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | never_astray, 0666));
}

std::optional<std::string> start_of_file_at(int folder, const char* name, std::size_t bytes) {
  const Descriptor file = open_file_at(folder, name);
  if (!file) return std::nullopt;
  std::string text(bytes, '\0');
  std::size_t size = 0;
  while (size < bytes) {
    const ssize_t n = ::read(file.get(), text.data() + size, bytes - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  return text;
}

bool remove_at(int folder, const char* name) {
  if (::unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  {
    const Descriptor inner = open_folder_at(folder, name);
    if (!inner) return false;
    for (const std::string& entry : names_in(inner.get()))
      if (!remove_at(inner.get(), entry.c_str())) return false;
  }
  return ::unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

bool synchronise(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;  // some file systems have none
}

}  // namespace convoy::runs
