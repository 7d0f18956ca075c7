// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cctype>
#include <string_view>

namespace convoy {

/// Whether a name is kept for the hosts of dedicated parameter servers: ps0, ps1, ...
inline bool is_server_host(std::string_view name) {
  return name.size() > 2 && name.starts_with("ps") &&
         std::all_of(name.begin() + 2, name.end(), [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace convoy
