// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/yaml_map.h"

namespace convoy::inline topologies {

/// How a number is known, the surest first but for `given`:
///   measured    somebody measured it on such a machine
///   fitted      a fit to measurements left it
///   data_sheet  its maker or provider states it
///   assumed     the catalogue takes it from something like it
///   unstated    nobody says anything: the usual value
///   given       an experiment writes it: exact unless it says a spread
enum class Grade : std::uint8_t { measured, fitted, data_sheet, assumed, unstated, given };
inline constexpr std::array<std::string_view, 6> grade_names{"measured", "fitted",   "data_sheet",
                                                             "assumed",  "unstated", "given"};
inline std::string_view to_string(Grade grade) { return grade_names[static_cast<std::size_t>(grade)]; }
/// Whether predictions that hang on such a number say so.
inline bool is_guess(Grade grade) { return grade == Grade::assumed || grade == Grade::unstated; }

/// Where a number is from. In YAML one text: "GRADE: where from", or "GRADE +-20%: where from" with a spread;
/// a text that begins with no grade is of something given.
struct Source {
  Grade grade = Grade::given;
  /// Standard deviation of log(number / true one); nothing: not told here.
  std::optional<double> spread;
  std::string text;
  bool operator==(const Source&) const = default;
};

/// By the dotted key of a number, or of a mapping whose numbers it holds for, in order.
using Sources = std::vector<std::pair<std::string, Source>>;

/// Takes the mapping `sources` where it is there. @throws InputError: a value that is no text, a spread that
/// is none
Sources read_sources(YamlMap& map);

/// That of `key`, else of the innermost mapping around it that has one; nullptr: none has.
const Source* find_source(const Sources& sources, std::string_view key);

/// "assumed +-20%: where from"
std::string to_string(const Source& source);

}  // namespace convoy::topologies
