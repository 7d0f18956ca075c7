// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <ext/stdio_filebuf.h>
#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace convoy::inline runs {

/// A file descriptor that is closed with this object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Files in a folder that somebody else may have made: opened by name in the folder's descriptor, never
// through a link, and without waiting for the other end of a pipe. On failure, errno says why.

enum class EntryKind : std::uint8_t { none, file, folder, other };

EntryKind entry_at(int folder, const char* name);
std::vector<std::string> names_in(int folder);
/// Opens a file for reading; nothing if there is none, or if it is something other than a file (see errno).
Descriptor open_file_at(int folder, const char* name);
Descriptor open_folder_at(int folder, const char* name);
/// Creates a file that must not exist.
Descriptor make_file_at(int folder, const char* name);
/// The beginning of the file; nothing if it cannot be read.
std::optional<std::string> start_of_file_at(int folder, const char* name, std::size_t bytes);
/// Removes a file, a link, or a folder with everything in it. False if something is left.
bool remove_at(int folder, const char* name);
/// Waits until a file or folder is on the disk. False if that fails.
bool synchronise(int descriptor);

/// The text of an opened file.
class FileStream : public std::istream {
 public:
  explicit FileStream(Descriptor file)
      : std::istream(nullptr), buffer_(file.release(), std::ios::in | std::ios::binary) {
    init(&buffer_);
  }

 private:
  __gnu_cxx::stdio_filebuf<char> buffer_;
};

}  // namespace convoy::runs
