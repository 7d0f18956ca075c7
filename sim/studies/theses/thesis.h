// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/result.h"

namespace convoy {

/// One line of a thesis' comparison.
struct Claim {
  enum class Kind {
    published,   ///< a figure of the thesis, predicted
    calibrated,  ///< a figure of the thesis to which the free parameter was set: says nothing about the error
    expected,    ///< no figure was published; an order or bound that follows from the method
    shown,       ///< a figure beside the others, without a verdict
  };
  Kind kind;
  std::string what, setup, unit;
  double ours = 0;
  std::optional<double> published;
  double low = 0, high = 0;  ///< accepted values of ours (kinds with a verdict)
  std::string source;  ///< of the figure or the order: a key of ThesisReproduction::sources; "" where shown

  bool passed() const { return kind == Kind::shown || (low <= ours && ours <= high); }
};
std::string_view to_string(Claim::Kind kind);

/// Where claims come from.
struct ClaimSource {
  std::string key;   ///< a word, as tables have room for
  std::string text;  ///< what and where that is
};
/// Of claims that nobody published: what follows from the method, by our own calculation.
inline constexpr const char* calculation = "calculation";
/// Of what the abstract states, in figures or in words.
inline constexpr const char* abstract = "abstract";

/// What a thesis claims, made again.
struct ThesisReproduction {
  std::string name, title, note;
  std::vector<ClaimSource> sources;
  std::vector<Claim> claims;
  bool passed() const;
  /// The text of a claim's source; "" where it has none.
  const std::string& source_of(const Claim& claim) const;
};
/// Name, title and note, and the two sources that every thesis has. @param of_abstract where it was read
ThesisReproduction make_thesis(std::string name, std::string title, std::string note,
                               std::string of_abstract);

/// A row of the table of theses; another thesis costs one file pair and one row.
struct ThesisEntry {
  const char* name;  ///< also of its experiment in configs/papers
  ThesisReproduction (*run)(std::size_t jobs);
};
const std::vector<ThesisEntry>& thesis_entries();

/// All runs of configs/papers/NAME.yaml, in the order of its sweep. @throws std::runtime_error where one
/// failed.
std::vector<RunResult> run_paper(const std::string& name, std::size_t jobs);

/// A figure within `tolerance` of the published one: in its unit, or relative.
Claim published_within(std::string what, std::string setup, std::string unit, double published, double ours,
                       double tolerance, bool relative, std::string source = abstract);
/// A ratio or quantity that should be at most `high`.
Claim expected_at_most(std::string what, std::string setup, std::string unit, double ours, double high,
                       std::string source = calculation);
Claim shown(std::string what, std::string setup, std::string unit, double ours);

}  // namespace convoy
