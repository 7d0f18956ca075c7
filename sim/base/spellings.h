// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"

namespace convoy::inline base {

// What readers understand beside the usual spelling, for those who describe it without reading.

/// Every way to write a unit of `dimension` that parse_quantity understands, sorted: "GB/s", "Gbps", "gbps".
std::vector<std::string> unit_spellings(Dimension dimension);

/// A regular expression of a text whatever its capitals: "[Gg][Bb]/[Ss]". The text's other characters stand for
/// themselves.
std::string any_capitals(std::string_view text);

/// Regular expressions (ECMA-262), one for each name, of the texts that mean it: the name, its parts and other
/// words for it, whatever the capitals and the separators. Names of makers before it are left out.
std::vector<std::string> spelling_patterns(std::span<const std::string> known);

}  // namespace convoy::base
