// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::inline runs {

/// The build id of the program or module that holds this code, in hexadecimal.
std::string program_build();

/// The files of the catalogue and of the zoo with the SHA-256 of each: "models/zoo/alexnet.yaml", sorted.
/// Read once a process.
const std::vector<std::pair<std::string, std::string>>& program_files();

/// Digest of what every run depends on beside its experiment: this program as it was built, SimGrid, and the
/// files of the catalogue and of the zoo.
std::string program_digest();

/// What a point is known by: the digest of all that its run depends on.
class PointKey {
 public:
  /// Of that content.
  static PointKey of(std::string_view content);
  /// Nothing: these are not the bytes of one.
  static std::optional<PointKey> read(std::string_view bytes);

  /// As stores have it.
  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }
  auto operator<=>(const PointKey&) const = default;

 private:
  std::array<char, 16> bytes_{};  ///< of SHA-256, the first: a million of them are to fit in memory
};

/// Digests by which a store identifies points: of the content of the point (its parts with sweep and settings
/// applied, without the name of the experiment), of the files from which its parts were read, of the program,
/// and of the options that change the result of a run.
class PointKeys {
 public:
  explicit PointKeys(const std::string& options);
  /// @param content PointReader::content() of the point
  /// @param inputs what Preparer::read_parts returned for it
  PointKey key(const std::string& content, const std::string& inputs) const;

 private:
  std::string common_;
};

}  // namespace convoy::runs
