// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/studies/regions/region.h"

namespace convoy::inline results {
class JsonWriter;
}

namespace convoy::inline studies {

/// study.json: schema convoy.study/1 (docs/studies.md). What is not known is null.
void write_json(const StudyResult& study, std::ostream& out);
/// JSON Schema of it.
std::string study_schema_text();
/// The same as a value of a larger document.
void write_json(const StudyResult& study, JsonWriter& json);

/// For a terminal.
std::string table(const StudyResult& study);

/// One sentence a claim: the share of the space in which it holds, and where that is.
std::string sentence_of(const StudyResult& study, std::size_t claim);
/// Whether one set of inputs makes all claims hold, and which.
std::string together_sentence(const StudyResult& study);
/// "at least 1", "5.4 to 6.6"
std::string accepted_text(const StudyClaim& claim);
/// "rate 71 %, batch 12 %": first-order indices, the largest first; "" where there are none
std::string deciding_text(const StudyResult& study, std::size_t claim);
/// "62 % ± 2.1 %"
std::string share_text(const StudyShare& share);

/// A page with the same and drawings, two inputs at a time.
void write_report(const StudyResult& study, std::ostream& out);
/// The pictures of one claim: a drawing for each pair of inputs, those that decide most first. In each cell
/// the share of its possible points at which the claim holds.
std::vector<std::string> region_pictures(const StudyResult& study, std::size_t claim, std::size_t most);

}  // namespace convoy::studies
