// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace convoy::inline page {

/// interactive.js, which is built into the program.
std::string_view interactive_script();

}  // namespace convoy::page
