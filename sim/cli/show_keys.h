// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// `convoy show strategies`: the kinds, a kind's line in the list, and its keys.
std::vector<std::string> strategy_names();
std::string strategy_line(const std::string& name);
void show_strategy(std::ostream& out, const ShowArguments& arguments);

/// `convoy show keys`: the same of the other mappings of experiments and plans.
std::vector<std::string> key_section_names();
std::string key_section_line(const std::string& name);
void show_key_section(std::ostream& out, const ShowArguments& arguments);

/// A section of `convoy show keys`, "strategy" or "described-server"; nullptr where there is no such section.
const KeySection* find_key_section(const std::string& name);
/// The same. @throws std::out_of_range
const KeySection& key_section(const std::string& name);

/// Keys with those of the mappings in them, by their paths: "anchor.batch", "links[].at".
std::vector<KeyText> by_path(const std::vector<KeyText>& keys, const std::string& path = "");

}  // namespace convoy::cli
