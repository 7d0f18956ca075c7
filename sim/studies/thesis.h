// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/studies/claims/claim.h"

namespace convoy::inline studies {

/// A sentence of an abstract with how many of the lines that judge it passed, failed and have no verdict.
struct JudgedSentence {
  AbstractSentence sentence;
  int passed = 0, failed = 0, without_verdict = 0;
};

/// What a thesis or paper claims, made again and judged.
struct ThesisReproduction {
  std::string name, title, note;
  std::vector<std::pair<std::string, std::string>> sources;  ///< key -> what and where that is
  std::vector<JudgedClaim> claims;
  std::vector<JudgedSentence> abstract;
  /// No line fails but those that are listed as known shortfalls, and these do.
  bool passed() const;
  /// The text of a claim's source; "" where it is our own.
  std::string source_of(const JudgedClaim& claim) const;
};

/// Files of results/published/theses; another thesis costs one of these and its experiments.
std::vector<std::string> thesis_names();

/// A thesis's claims and the records that they are judged on.
struct ThesisStudy {
  ClaimFile file;
  RecordTables records;
};
/// Runs what the claims of a thesis need. @param jobs processes at a time
/// @throws InputError, std::runtime_error where a run failed
ThesisStudy run_thesis(const std::string& name, std::size_t jobs);

ThesisReproduction judge(const ThesisStudy& study);

}  // namespace convoy::studies
