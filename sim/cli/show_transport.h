// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// `convoy show transports`: a transport's line in the list, and one in detail.
std::string transport_line(const std::string& name);
void show_transport(std::ostream& out, const ShowArguments& arguments);

}  // namespace convoy::cli
