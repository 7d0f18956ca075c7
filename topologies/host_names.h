// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/yaml_map.h"

namespace convoy::inline topologies {

/// Whether a name is kept for the hosts of dedicated parameter servers: ps0, ps1, ...
inline bool is_server_host(std::string_view name) {
  return name.size() > 2 && name.starts_with("ps") &&
         std::all_of(name.begin() + 2, name.end(), [](unsigned char c) { return std::isdigit(c); });
}

/// Refuses what is no name of hosts, and names that are kept. @throws InputError at the map's `name`
void check_host_name(const YamlMap& map, const std::string& name);

/// Hosts name0, name1, ... of one entry.
struct HostRange {
  std::string_view name;
  std::uint32_t count;
};
/// The first name that hosts of both have; "a" with 12 hosts and "a1" both have a host a10.
std::optional<std::string> common_host(const HostRange& x, const HostRange& y);

}  // namespace convoy::topologies
