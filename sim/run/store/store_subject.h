// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/origin.h"
#include "sim/results/result.h"
#include "sim/run/store/point_key.h"
#include "sim/run/sweep_points.h"

namespace convoy::inline runs {

/// A point of a sweep as a store lists it.
struct SweepPoint {
  std::size_t position = 0;  ///< in the sweep's order, from 0
  PointKey key;
  bool operator==(const SweepPoint&) const = default;
};

/// What the points in a store belong to.
struct StoreSubject {
  std::string experiment;  ///< its name
  Manifest manifest;
  std::string jobs;  ///< `jobs:` of the experiment (to_yaml); "": none
  std::shared_ptr<const SweepPoints> sweep = std::make_shared<const SweepPoints>();
  /// Those that the store is asked for, by position: all, or those of the shards that were simulated into it.
  std::vector<SweepPoint> points;
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

/// Of everything in it. @param manifest, sweep, origin: as text
std::string digest_of(const StoreSubject& subject, const std::string& manifest, const std::string& sweep,
                      const std::string& origin);

}  // namespace convoy::runs
