// SPDX-License-Identifier: MIT
#include "sim/planning/plan_machines.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/planning/plan_lists.h"
#include "topologies/catalog.h"

namespace convoy::inline planning {
namespace {

/// A server written out, as in a cluster's `servers`, with its `name`. @returns its name
std::string read_own_server(const YamlNode& item, const std::string& path,
                            const std::vector<std::string>& known, PlanSpec& spec) {
  YamlMap map(item, path);
  const std::string name = map.text("name");
  if (name.empty() || std::find(known.begin(), known.end(), name) != known.end() ||
      spec.own_servers.contains(name))
    map.fail("name", fmt::format("'{}' is {}; give your own server a name of its own", name,
                                 name.empty() ? "no name" : "another server"));
  YamlNode server = item;
  std::erase_if(server.entries, [](const auto& entry) { return entry.first == "name"; });
  spec.own_servers.emplace(name, std::move(server));
  return name;
}

}  // namespace

Keys<std::int64_t> most_nodes_keys() {
  return {
      optional_integer_key<std::int64_t>("max", "", 1, most_nodes, "1, 2, 4, ... up to it", std::identity{})
          .required()};
}

/// A list of counts, or {max: N}: 1, 2, 4, ... up to N.
void read_nodes(YamlMap& map, PlanSpec& spec) {
  if (!map.find("nodes")) return;
  if (map.node("nodes").kind != YamlNode::Kind::mapping) {
    spec.nodes = read_numbers(map, "nodes", most_nodes);
    return;
  }
  std::int64_t most = 0;
  read_part(most_nodes_keys(), map.map("nodes"), most);
  spec.nodes.clear();
  for (std::int64_t n = 1; n <= most; n *= 2) spec.nodes.push_back(n);
}

/// "0.15USD/kWh".
void read_electricity(YamlMap& map, PlanSpec& spec) {
  if (!map.find("electricity")) return;
  const std::string text = read_text(map.node("electricity"), map.path_of("electricity"));
  const std::string_view unit = "USD/kWh";
  std::optional<double> value;
  if (text.ends_with(unit)) {
    std::string_view digits = std::string_view(text).substr(0, text.size() - unit.size());
    while (digits.ends_with(' ')) digits.remove_suffix(1);
    value = parse_number(digits);
  }
  if (!value || *value < 0)
    map.fail("electricity", fmt::format("'{}' is no price such as 0.15USD/kWh", text));
  spec.electricity_usd_per_j = *value / joules_a_kwh;
}

void read_servers(YamlMap& map, PlanSpec& spec) {
  const std::vector<std::string> names = server_names();
  spec.all_servers = !map.find("servers");
  if (spec.all_servers) {
    spec.servers = names;
    return;
  }
  std::vector<std::string> found;
  for (const YamlNode* item : list_items(map, "servers")) {
    if (item->kind == YamlNode::Kind::mapping) {
      found.push_back(read_own_server(*item, map.path_of("servers"), names, spec));
      continue;
    }
    const std::string pattern = read_text(*item, map.path_of("servers"));
    const std::size_t before = found.size();
    for (const std::string& name : names)
      if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) found.push_back(name);
    if (found.size() == before)
      throw InputError(item->pos,
                       fmt::format("plan.servers: no server of the catalogue is called '{}'{}; `convoy "
                                   "show servers` lists them",
                                   pattern, suggestion(pattern, names)));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  spec.servers = std::move(found);
}

/// Regions that the price table knows; others would leave every candidate without a price.
void read_regions(YamlMap& map, PlanSpec& spec) {
  if (!map.find("region")) return;
  std::set<std::string> known;
  for (const Price& price : spec.prices().prices()) known.insert(price.region);
  for (const YamlNode* item : list_items(map, "region")) {
    std::string region = read_text(*item, map.path_of("region"));
    const std::vector<std::string> names(known.begin(), known.end());
    if (!known.contains(region))
      throw InputError(item->pos,
                       fmt::format("plan.region: no price in a region '{}'{}; the price table has {}", region,
                                   suggestion(region, names), list_of(names)));
    if (std::find(spec.regions.begin(), spec.regions.end(), region) == spec.regions.end())
      spec.regions.push_back(std::move(region));
  }
  std::sort(spec.regions.begin(), spec.regions.end());
}

}  // namespace convoy::planning
