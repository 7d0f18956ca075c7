// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// `convoy show frameworks`: what the key `like` of a strategy stands for; a framework's line in the list, and
/// its keys with the source of each.
std::vector<std::string> framework_names();
std::string framework_line(const std::string& name);
void show_framework(std::ostream& out, const ShowArguments& arguments);

}  // namespace convoy::cli
