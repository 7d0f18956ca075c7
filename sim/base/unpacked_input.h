// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <fstream>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

namespace convoy::inline base {

/// The bytes of a file that a user names, unpacked where the file is packed with gzip (RFC 1952; one member or
/// several, as `cat a.gz b.gz` makes them). What it is, its first bytes say, whatever its name is.
///
/// Reading throws InputError with the file's name where the gzip data are damaged, cut or followed by other
/// bytes, and where they unpack to more than `largest_growth` times their size: no text of measurements does,
/// and a file made to fill a memory stops there. Read by rdbuf-style calls (sgetc, sbumpc), which pass
/// exceptions on; formatted input of std::istream would turn them into a state.
class UnpackedInput : public std::streambuf {
 public:
  static constexpr std::size_t largest_growth = 200;         ///< unpacked bytes for a packed one
  static constexpr std::size_t always_bytes = 64ULL << 20U;  ///< that may be unpacked however few there were

  /// @throws InputError if the file cannot be read.
  explicit UnpackedInput(const std::string& file);
  ~UnpackedInput() override;
  UnpackedInput(const UnpackedInput&) = delete;
  UnpackedInput& operator=(const UnpackedInput&) = delete;

  bool packed() const { return inflater_ != nullptr; }
  /// Unpacked bytes that have been read.
  std::size_t consumed() const { return before_ + static_cast<std::size_t>(gptr() - eback()); }
  /// Reads to the end, so that what is wrong with the packing is thrown whatever was made of the bytes.
  void drain();

 protected:
  int_type underflow() override;

 private:
  class Inflater;

  std::size_t read_file();  ///< into in_; 0 at its end
  std::size_t unpack();     ///< into out_; 0 at the end
  [[noreturn]] void fail(const std::string& what) const;

  std::string file_;
  std::ifstream stream_;
  std::vector<char> in_, out_;
  std::size_t before_ = 0;  ///< unpacked bytes before those in the buffer
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace convoy::base
