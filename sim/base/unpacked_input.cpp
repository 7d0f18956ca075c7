// SPDX-License-Identifier: MIT
#include "sim/base/unpacked_input.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "sim/base/input_error.h"
#include "sim/base/input_file.h"

namespace convoy::inline base {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 16;
constexpr unsigned char magic[] = {0x1f, 0x8b};

Bytef* bytes(char* text) { return reinterpret_cast<Bytef*>(text); }

}  // namespace

/// zlib's state of one file.
class UnpackedInput::Inflater {
 public:
  Inflater() {
    constexpr int gzip_alone = 16;  // added to the size of the window (zlib.h)
    if (inflateInit2(&z, MAX_WBITS + gzip_alone) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&z); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream z{};
  std::size_t packed = 0, unpacked = 0;  ///< bytes
  bool member_ended = false;
};

UnpackedInput::UnpackedInput(const std::string& file)
    : file_(file), stream_(open_input(file)), in_(block_bytes) {
  if (!stream_) fail("cannot be read");
  const std::size_t size = read_file();
  if (size >= 1 && bytes(in_.data())[0] == magic[0] && (size < 2 || bytes(in_.data())[1] == magic[1])) {
    inflater_ = std::make_unique<Inflater>();
    inflater_->z.next_in = bytes(in_.data());
    inflater_->z.avail_in = static_cast<uInt>(size);
    inflater_->packed = size;
    out_.resize(block_bytes);
  } else {
    setg(in_.data(), in_.data(), in_.data() + size);
  }
}

UnpackedInput::~UnpackedInput() = default;

void UnpackedInput::fail(const std::string& what) const { throw InputError({file_, 0, 0}, what); }

std::size_t UnpackedInput::read_file() {
  stream_.read(in_.data(), static_cast<std::streamsize>(in_.size()));
  if (stream_.bad()) fail("cannot be read");
  return static_cast<std::size_t>(stream_.gcount());
}

std::size_t UnpackedInput::unpack() {
  Inflater& i = *inflater_;
  i.z.next_out = bytes(out_.data());
  i.z.avail_out = static_cast<uInt>(out_.size());
  while (i.z.avail_out == out_.size()) {
    if (i.z.avail_in == 0) {
      const std::size_t size = read_file();
      i.z.next_in = bytes(in_.data());
      i.z.avail_in = static_cast<uInt>(size);
      i.packed += size;
      if (size == 0 && i.member_ended) return 0;
      if (size == 0) fail("is cut: its gzip data end too early");
    }
    if (i.member_ended) {
      if (*i.z.next_in != magic[0]) fail("has other bytes after its gzip data");
      inflateReset(&i.z);
      i.member_ended = false;
    }
    const int state = inflate(&i.z, Z_NO_FLUSH);
    if (state == Z_STREAM_END)
      i.member_ended = true;
    else if (state == Z_MEM_ERROR)
      throw std::bad_alloc();
    else if (state != Z_OK && state != Z_BUF_ERROR)
      fail(fmt::format("holds damaged gzip data ({})", i.z.msg ? i.z.msg : "a preset dictionary"));
  }
  const std::size_t size = out_.size() - i.z.avail_out;
  i.unpacked += size;
  if (i.unpacked > always_bytes && i.unpacked / largest_growth > i.packed)
    fail(fmt::format(
        "unpacks to more than {} times its size (allowed beyond {} MiB): no text of measurements does",
        largest_growth, always_bytes >> 20U));
  return size;
}

UnpackedInput::int_type UnpackedInput::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  before_ += static_cast<std::size_t>(egptr() - eback());
  std::vector<char>& buffer = packed() ? out_ : in_;
  setg(buffer.data(), buffer.data(), buffer.data());
  const std::size_t size = packed() ? unpack() : read_file();
  setg(buffer.data(), buffer.data(), buffer.data() + size);
  return size == 0 ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

void UnpackedInput::drain() {
  while (sgetc() != traits_type::eof()) gbump(static_cast<int>(egptr() - gptr()));
}

}  // namespace convoy::base
