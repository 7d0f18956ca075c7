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

  bool passed() const { return kind == Kind::shown || (low <= ours && ours <= high); }
};
std::string_view to_string(Claim::Kind kind);

/// What a thesis claims, made again.
struct ThesisReproduction {
  std::string name, title, note;
  std::vector<Claim> claims;
  bool passed() const;
};

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
                       double tolerance, bool relative);
/// A ratio or quantity that should be at most `high`.
Claim expected_at_most(std::string what, std::string setup, std::string unit, double ours, double high);
Claim shown(std::string what, std::string setup, std::string unit, double ours);

}  // namespace convoy
