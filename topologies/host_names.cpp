// SPDX-License-Identifier: MIT
#include "topologies/host_names.h"

#include <fmt/format.h>

#include "sim/base/quantity.h"

namespace convoy::inline topologies {

void check_host_name(const YamlMap& map, const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed))
    map.fail("name", fmt::format("'{}' is not a name: letters, digits, - and _ are allowed", name));
  if (name == "ps" || is_server_host(name))  // several hosts of "ps" would be ps0, ps1, ...
    map.fail("name", fmt::format("'{}' is kept for dedicated parameter servers (ps0, ps1, ...)", name));
}

std::optional<std::string> common_host(const HostRange& x, const HostRange& y) {
  const HostRange &shorter = x.name.size() <= y.name.size() ? x : y, &longer = &shorter == &x ? y : x;
  if (!longer.name.starts_with(shorter.name)) return std::nullopt;
  const std::string digits{longer.name.substr(shorter.name.size())};
  if (digits.empty()) return std::string(shorter.name) + "0";
  const std::optional<double> start = parse_number(digits + "0");
  const bool whole =
      std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!whole || !start || digits[0] == '0' || *start >= shorter.count) return std::nullopt;
  return std::string(longer.name) + "0";
}

}  // namespace convoy::topologies
