// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/studies/regions/study_points.h"

namespace convoy::inline studies {

/// In words, where a claim holds, and for which share of the points these words are right.
struct RegionSentence {
  /// What follows "holds": "for batch at most 48 and rate at least 2.1 Gbps", "except for nodes 2", "everywhere".
  std::string text;
  double right = 1;      ///< share of the points at which the words say what is
  double otherwise = 1;  ///< the same share of the better of "always" and "never", to compare with
};

/// Describes where `holds` is true by at most three conditions in a row: a classification tree (Breiman, Friedman,
/// Olshen and Stone 1984), split by Gini's impurity, whose leaves have at least 4 points and a fiftieth of all, and
/// whose splits take at least a fiftieth of all impurity. Its depth is the least with which it is right at nearly as
/// many points: a fiftieth of all fewer, and a quarter of those gained over "always" or "never", at most. What all
/// cases have in common is said once. Values in the words are of points that were tried.
/// @pre as many truths as points, at least one
/// @param usable whether each input may stand in the words
RegionSentence describe_region(const StudySpec& spec, const std::vector<bool>& usable,
                               const std::vector<StudyPoint>& points, const std::vector<bool>& holds);

}  // namespace convoy::studies
