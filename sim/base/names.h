// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::inline base {

/// Names of `known` that somebody may mean who writes `written`: that name itself; else those that the field
/// calls so ("ddp", "half"); else those that are the same but for case, separators ("ResNet-50") and words
/// before them ("Tesla T4"); else those of which it is a part, whole words and numbers ("A100", "p4d").
std::vector<std::string> meanings(std::string_view written, std::span<const std::string> known);

/// The only name that is meant; `written` itself where there is none, or several. What looks a value up in a
/// table of names asks here first, so that all tables understand the same, and goes on with the table's name.
std::string meant(std::string_view written, std::span<const std::string> known);

/// " (did you mean 'x'?)" for what may be meant, or for the nearest known name within two typing errors, else
/// "".
std::string suggestion(std::string_view wrong, std::span<const std::string> known);

/// Names of an enumeration as the texts with which readers compare.
std::vector<std::string> texts_of_names(std::span<const std::string_view> names);

/// "a, b, c"; at most `limit` names, then "and N more".
std::string list_of(std::span<const std::string> names, std::size_t limit = 24);

}  // namespace convoy::base
