// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/studies/regions/region_tree.h"
#include "sim/studies/regions/study_runs.h"

namespace convoy::inline studies {

/// A share of the possible points of a sample.
struct StudyShare {
  std::size_t count = 0, of = 0;
  /// Of the share as an estimate of that of the space: the deviation of the sample's parts over the root of
  /// their number, and at least 1 / (points + 2), since no sample proves 0 or 1. Nothing for a grid.
  std::optional<double> standard_error;
  double share() const { return of ? static_cast<double>(count) / static_cast<double>(of) : 0; }
};

/// Where a claim begins, or ceases, to hold if one input alone changes.
struct StudyBorder {
  std::size_t input = 0;
  StudyPoint at;                ///< the other inputs, and this one where the claim holds
  double holds = 0, fails = 0;  ///< positions of the input, of points that were computed
};

/// For which inputs one claim holds.
struct ClaimRegion {
  StudyShare share;
  double least = 0, median = 0, greatest = 0;  ///< of its value, over possible points
  /// For each input the share of the variance of "holds" (0 or 1) that it explains alone: the first-order
  /// index of Sobol', Math. Comput. Simul. 55, 2001, from the sample itself (Plischke, Borgonovo and Smith,
  /// EJOR 226, 2013), adjusted for the number of classes, not below 0. Empty where it holds always or never.
  std::vector<double> first_order;
  RegionSentence sentence;
  std::vector<StudyBorder> borders;
};

/// Whether one set of inputs makes all claims hold.
struct StudyTogether {
  StudyShare share;
  std::optional<StudyPoint> set;  ///< that which is nearest to the middle, as far as was looked
  bool searched = false;          ///< no point of the sample was one: it was looked for beside them
  StudyPoint nearest{};           ///< where there is none: the point that misses by the least
};

struct StudyResult {
  std::string experiment;
  StudySpec spec;
  StudySample sample;
  std::vector<StudyOutcome> outcomes;                           ///< of the sample's points
  std::vector<std::pair<std::string, std::size_t>> impossible;  ///< reasons, the most frequent first
  std::vector<ClaimRegion> regions;                             ///< of the claims
  StudyTogether together;
  std::vector<double> together_values;  ///< of the claims at `set`, or at `nearest`
  std::size_t simulated = 0;            ///< different experiments
  Manifest manifest;
  bool whole = true;  ///< false: stopped, and nothing but `simulated` is known
};

/// Computes the points, the borders and the search for a set of inputs that makes all claims hold.
/// @throws InputError: also if no point is possible
StudyResult run_study(const Experiment& experiment, const StudySpec& spec, Store& store,
                      const StudyOptions& options);

}  // namespace convoy::studies
