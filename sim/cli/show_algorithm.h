// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// `convoy show algorithms`: the values of `algorithm`, an algorithm's line in the list, and its messages among
/// so many ranks as a schedule: of one that has a schedule in configs/collectives, or of a file.
std::vector<std::string> algorithm_names();
std::string algorithm_line(const std::string& name);
void show_algorithm(std::ostream& out, const ShowArguments& arguments);

}  // namespace convoy::cli
