// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/studies/claims/claim.h"
#include "sim/studies/regions/region.h"

namespace convoy::inline studies {

/// A sentence of an abstract, with how many of the lines that judge it passed, failed and have no verdict.
struct JudgedSentence {
  AbstractSentence sentence;
  int passed = 0, failed = 0, without_verdict = 0;
};

/// The claims of a thesis or paper, computed again and judged.
struct ThesisReproduction {
  std::string name, title, note;
  std::vector<std::pair<std::string, std::string>> sources;  ///< key -> what and where that is
  std::vector<JudgedClaim> claims;
  std::vector<JudgedSentence> abstract;
  /// Whether exactly those lines fail that are listed as known shortfalls.
  bool passed() const;
  /// The text of a claim's source; "" if it is our own.
  std::string source_of(const JudgedClaim& claim) const;
};

/// Files of results/published/theses; another thesis needs one such file and its experiments.
std::vector<std::string> thesis_names();

/// The claims of a thesis and the records on which they are judged.
struct ThesisStudy {
  ClaimFile file;
  RecordTables records;
};
/// Runs what the claims of a thesis need. @param jobs processes at a time
/// @throws InputError, std::runtime_error if a run failed
ThesisStudy run_thesis(const std::string& name, std::size_t jobs);

/// The theses that have a study of their unknown inputs, configs/papers/NAME-where.yaml.
std::vector<std::string> theses_with_where();
/// For which of their unknown inputs the claims of a thesis hold. @pre name is one of theses_with_where()
/// @throws InputError
StudyResult run_where(const std::string& name, std::size_t jobs);

ThesisReproduction judge(const ThesisStudy& study);

}  // namespace convoy::studies
