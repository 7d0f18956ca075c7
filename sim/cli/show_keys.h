// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

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

}  // namespace convoy::cli
