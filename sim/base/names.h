// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline base {

/// " (did you mean 'x'?)" for the nearest known name within two typing errors, otherwise "".
std::string suggestion(std::string_view wrong, std::span<const std::string> known);

/// Names of an enumeration as the texts with which readers compare.
std::vector<std::string> texts_of_names(std::span<const std::string_view> names);

/// "a, b, c"; at most `limit` names, then "and N more".
std::string list_of(std::span<const std::string> names, std::size_t limit = 24);

}  // namespace convoy::base
