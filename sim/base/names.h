// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy {

/// " (did you mean 'x'?)" for the nearest known name within two typing errors, else "".
std::string suggestion(std::string_view wrong, std::span<const std::string> known);

/// "a, b, c"; at most `limit` names, then "and N more".
std::string list_of(std::span<const std::string> names, std::size_t limit = 24);

}  // namespace convoy
