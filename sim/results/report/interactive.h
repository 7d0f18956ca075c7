// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace convoy::inline results {

/// interactive.js, which is built into the program.
std::string_view interactive_script();

}  // namespace convoy::results
