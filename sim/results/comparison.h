// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/results/origin.h"
#include "sim/results/result.h"

namespace convoy::inline results {

/// One of two results that are compared.
struct ComparedResults {
  std::string name;  ///< as the user gave it
  Results results;
  std::optional<Origin> origin = {};  ///< nothing where only results.json is there
};

/// A number that a step is made of, or that a user pays for, in both runs; nothing where a run has none.
struct ComparedTerm {
  std::string name;  ///< as in results.json: "exposed_comm_s"
  std::array<std::optional<double>, 2> values;
};

/// A point whose two runs differ in a number that results.json has.
struct ChangedPoint {
  std::vector<std::pair<std::string, YamlNode>> point;
  std::array<std::string, 2> ids;
  std::array<double, 2> step_time_s{}, global_batch{}, images_per_s{};
  std::vector<ComparedTerm> terms;
  /// What the runs were computed from and is not the same: keys of the experiment, input files, entries of
  /// the catalogue, the program. Which of several makes the difference is not known.
  std::vector<std::string> because;

  /// Whether the steps of both have as many images, so that their times compare; otherwise images/s do.
  bool same_batch() const { return global_batch[0] == global_batch[1]; }
};

/// Two results, joined on the point.
struct Comparison {
  std::array<std::string, 2> names;
  std::int64_t same = 0;
  /// Points that have a run in one of them only: not in its sweep, failed, or not computed yet in the other.
  std::array<std::vector<std::vector<std::pair<std::string, YamlNode>>>, 2> only;
  std::vector<ChangedPoint> changed;  ///< by |log| of the ratio of speeds, the largest first
};

/// Points are equal where they have the same paths with the same values, in whatever order they are swept or
/// their mappings are written. Of several equal points of a sweep the first is joined with the first.
Comparison compare(const ComparedResults& a, const ComparedResults& b);

/// Writes convoy.compare/1 (docs/compare.md).
void write_json(const Comparison& comparison, std::ostream& out);
/// JSON Schema of it.
std::string comparison_schema_text();

/// For people: what changed, the largest first, by term, and why.
std::string comparison_text(const Comparison& comparison);

/// A page with both, as report.html without network and script.
void write_page(const Comparison& comparison, std::ostream& out);

}  // namespace convoy::results
