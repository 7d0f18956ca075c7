// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command_texts.h"

namespace convoy::inline cli {

/// What may stand in the place of the last word of a command line, for the shells (sim/cli/completion): lines
/// of a word, or of a word, a tab and what it means; ":files" and ":folders" stand for those that the shell
/// knows. A word that ends with "=" or "." is only the beginning of one.
/// @param words those behind the program's name; the last one, which may be empty, is being typed
std::vector<std::string> completions(const std::vector<CommandText>& commands,
                                     const std::vector<std::string>& words);

/// Candidates for a `key.path=value` of `--set`: the next key of a path, or the names that may be its value.
/// @param section of `convoy show keys` that the path begins in: "experiment"
std::vector<std::string> setting_candidates(const std::string& section, const std::string& word);

}  // namespace convoy::cli
