// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/digest.h"
#include "sim/results/origin.h"
#include "sim/results/result.h"
#include "sim/run/store/point_key.h"

namespace convoy::inline runs {

/// A point of a sweep as a store lists it.
struct SweepPoint {
  std::size_t position = 0;  ///< in the sweep's order, from 0
  PointKey key;
  bool operator==(const SweepPoint&) const = default;
};

/// What the points in a store belong to.
struct StoreSubject {
  using TextOfPoint = std::function<std::string(std::size_t position)>;

  std::string experiment;  ///< its name
  Manifest manifest;
  std::string jobs;      ///< `jobs:` of the experiment (to_yaml); "": none
  std::size_t size = 0;  ///< points of the sweep
  /// Those that the store is asked for, by position: all, or those of the shards that were simulated into it.
  std::vector<SweepPoint> points;
  /// The coordinates (to_yaml) of a point that is listed, from the experiment or the store, which has to be there as long.
  TextOfPoint text;
  std::string options = {};  ///< that change the results of runs
  /// What the runs are computed from, for comparisons; nothing for a store that is used once, and in stores
  /// that were written before there was one.
  std::optional<Origin> origin = {};

  /// nullptr: it is not listed
  const SweepPoint* at(std::size_t position) const;
};

/// Why two stores have no parts of one sweep that was computed in one way.
enum class SubjectDifference : std::uint8_t {
  none,
  sweep,   ///< another experiment, or another sweep
  inputs,  ///< settings, files, or the program
};
SubjectDifference difference_of(const StoreSubject& a, const StoreSubject& b);

/// What several parts of one sweep list together. Of a point that two of them list, the later one's.
/// @pre none differs from the others (difference_of)
StoreSubject united(std::vector<StoreSubject> parts);

/// The same with the texts of its points in memory, which then come from nowhere else.
StoreSubject with_texts_in_memory(StoreSubject subject);

/// The digest of a subject as stores keep it, in which points come with their texts.
class SubjectDigest {
 public:
  /// @param manifest as text
  SubjectDigest(const std::string& experiment, const std::string& manifest, const std::string& jobs);
  void add(const SweepPoint& point, std::string_view text);
  /// Once all points are in it. @param origin as text
  std::string text(std::size_t size, const std::string& options, const std::string& origin);

 private:
  Sha256 digest_;
};

/// Of everything in it. @param manifest, origin: as text
std::string digest_of(const StoreSubject& subject, const std::string& manifest, const std::string& origin);

}  // namespace convoy::runs
