// SPDX-License-Identifier: MIT
#include "topologies/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/names.h"
#include "topologies/catalog.h"

namespace convoy::inline topologies {
namespace {

OwnEntries entries_of(YamlMap& map) {
  OwnEntries own;
  for (const std::string& name : map.keys()) own.emplace(name, &map.node(name));
  return own;
}

template <class Own>
std::vector<std::string> own_names(const Own& own) {
  std::vector<std::string> names;
  for (const auto& [key, value] : own) names.push_back(key);
  return names;
}

/// The entry, of the experiment's own and the catalogue's, that a name means.
template <class Own>
std::string meant_entry(const Own& own, const std::vector<std::string>& catalogue, const std::string& name) {
  std::vector<std::string> names = own_names(own);
  names.insert(names.end(), catalogue.begin(), catalogue.end());
  return meant(name, names);
}

/// The catalogue's reader would suggest names of the catalogue only; the experiment's own are nearer at hand.
template <class Own>
void suggest_own(const Own& own, const char* what, const std::vector<std::string>& catalogue,
                 const std::string& name, const SourcePos& pos) {
  if (std::binary_search(catalogue.begin(), catalogue.end(), name)) return;
  const std::vector<std::string> names = own_names(own);
  if (const std::string hint = suggestion(name, names); !hint.empty())
    throw InputError(pos, fmt::format("unknown {} '{}'{}", what, name, hint));
}

}  // namespace

Inventory::Inventory(YamlMap& cluster) {
  if (cluster.find("devices")) {
    YamlMap devices = cluster.map("devices");
    const OwnEntries own = entries_of(devices);
    for (const auto& [name, node] : own) {
      const CatalogueEntry entry = derive_entry(CatalogueKind::device, name, *node, own);
      DeviceType device = read_device(entry.node, name);
      device.framework_reserves = !entry.root.empty() && !entry.node.find("reserved");
      devices_.emplace(name, std::move(device));
    }
  }
  if (cluster.find("servers")) {
    YamlMap servers = cluster.map("servers");
    own_servers_ = entries_of(servers);
    for (const auto& [name, node] : own_servers_)
      servers_.emplace(name, read_own_server(name, *node, servers.path_of(name)));
  }
}

ServerSpec Inventory::read_own_server(const std::string& name, const YamlNode& node,
                                      const std::string& path) const {
  return read_catalogue_server(
      derive_entry(CatalogueKind::server, name, node, own_servers_), path, name,
      [this](const std::string& device, const SourcePos& pos) { return find_device(device, pos); });
}

ServerSpec Inventory::find_server(const std::string& name, const SourcePos& pos) const {
  if (servers_.empty()) return load_server(name, pos);
  if (const auto own = servers_.find(name); own != servers_.end()) return own->second;
  const std::vector<std::string> catalogue = server_names();
  const std::string meant_name = meant_entry(servers_, catalogue, name);
  if (const auto own = servers_.find(meant_name); own != servers_.end()) return own->second;
  suggest_own(servers_, "server", catalogue, meant_name, pos);
  return load_server(meant_name, pos);
}

DeviceType Inventory::find_device(const std::string& name, const SourcePos& pos) const {
  if (devices_.empty()) return load_device(name, pos);
  if (const auto own = devices_.find(name); own != devices_.end()) return own->second;
  const std::vector<std::string> catalogue = device_names();
  const std::string meant_name = meant_entry(devices_, catalogue, name);
  if (const auto own = devices_.find(meant_name); own != devices_.end()) return own->second;
  suggest_own(devices_, "device", catalogue, meant_name, pos);
  return load_device(meant_name, pos);
}

}  // namespace convoy::topologies
