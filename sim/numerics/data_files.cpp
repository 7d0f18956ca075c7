// SPDX-License-Identifier: MIT
#include "sim/numerics/data_files.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <vector>

#include "sim/base/data_path.h"
#include "sim/base/input_error.h"
#include "sim/base/unpacked_input.h"

namespace convoy::inline numerics {
namespace {

/// All bytes of a file, unpacked.
std::vector<unsigned char> bytes_of(const std::string& file) {
  UnpackedInput input(file);
  std::vector<unsigned char> bytes;
  for (int byte = input.sbumpc(); byte != UnpackedInput::traits_type::eof(); byte = input.sbumpc())
    bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

[[noreturn]] void fail_file(const std::string& file, const std::string& what) {
  throw InputError(SourcePos{file, 1, 1}, what);
}

/// The sizes of an IDX file's axes. @param axes that it must have
std::vector<std::int64_t> idx_sizes(const std::string& file, const std::vector<unsigned char>& bytes,
                                    std::size_t axes) {
  const std::size_t begin = 4 + 4 * axes;
  if (bytes.size() < begin || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8 || bytes[3] != axes)
    fail_file(file,
              fmt::format("is no IDX file of unsigned bytes with {} {}", axes, axes == 1 ? "axis" : "axes"));
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 4; i < begin; i += 4)
    sizes.push_back((std::int64_t{bytes[i]} << 24) | (bytes[i + 1] << 16) | (bytes[i + 2] << 8) |
                    bytes[i + 3]);
  double wanted = static_cast<double>(begin), values = 1;
  for (const std::int64_t size : sizes) values *= static_cast<double>(size);
  wanted += values;
  if (values == 0 || wanted != static_cast<double>(bytes.size()))
    fail_file(file, fmt::format("has {} bytes, and its head says {:.0f}", bytes.size(), wanted));
  return sizes;
}

}  // namespace

LearningData read_digits() {
  constexpr std::size_t pixels = 64, held_out_every = 5;
  const std::string file = data_path("models/data") + "/digits.csv.gz";
  const std::vector<unsigned char> bytes = bytes_of(file);
  const auto* at = reinterpret_cast<const char*>(bytes.data());
  const char* end = at + bytes.size();
  LearningData data;
  for (std::size_t line = 0; at < end; ++line) {
    LearningData::Part& part = line % held_out_every == held_out_every - 1 ? data.held_out : data.train;
    for (std::size_t i = 0; i <= pixels; ++i, ++at) {
      int value = 0;
      const auto [next, error] = std::from_chars(at, end, value);
      if (error != std::errc{}) fail_file(file, fmt::format("line {} is damaged", line + 1));
      at = next;
      if (i == pixels)
        part.labels.push_back(value);
      else
        part.values.push_back(static_cast<float>(value));
    }
  }
  return data;
}

Shape read_idx(const std::string& images, const std::string& labels, LearningData::Part& part) {
  const std::vector<unsigned char> pixels = bytes_of(images), classes = bytes_of(labels);
  const std::vector<std::int64_t> sizes = idx_sizes(images, pixels, 3);
  const std::vector<std::int64_t> count = idx_sizes(labels, classes, 1);
  if (sizes[0] != count[0])
    fail_file(labels, fmt::format("has {} labels, and '{}' has {} images", count[0], images, sizes[0]));
  part.values.insert(part.values.end(), pixels.begin() + 16, pixels.end());
  part.labels.insert(part.labels.end(), classes.begin() + 8, classes.end());
  return {1, sizes[1], sizes[2]};
}

void read_cifar(const std::string& file, LearningData::Part& part) {
  constexpr std::size_t row = 1 + 3 * 32 * 32;
  const std::vector<unsigned char> bytes = bytes_of(file);
  if (bytes.empty() || bytes.size() % row != 0)
    fail_file(file,
              fmt::format("has {} bytes; CIFAR-10's binary files have a multiple of {}", bytes.size(), row));
  for (std::size_t at = 0; at < bytes.size(); at += row) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    part.labels.push_back(*begin);
    part.values.insert(part.values.end(), begin + 1, begin + static_cast<std::ptrdiff_t>(row));
  }
}

}  // namespace convoy::numerics
