// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "sim/base/yaml_map.h"
#include "topologies/catalogue_files.h"
#include "topologies/server.h"

namespace convoy::inline topologies {

/// The servers and devices that a cluster may name: its own ones before the catalogue's.
class Inventory {
 public:
  /// Takes `devices` and `servers` of the cluster's mapping, whose node must outlive the inventory.
  /// @throws InputError
  explicit Inventory(YamlMap& cluster);

  /// A server that is described where its name could stand: `{base: aws-p3.16xlarge, price: 10USD/h}`.
  ServerSpec read_own_server(const std::string& name, const YamlNode& node, const std::string& path) const;
  /// @throws InputError at `pos` for an unknown name, with a suggestion
  ServerSpec find_server(const std::string& name, const SourcePos& pos) const;

 private:
  DeviceType find_device(const std::string& name, const SourcePos& pos) const;

  std::map<std::string, DeviceType> devices_;
  std::map<std::string, ServerSpec> servers_;
  OwnEntries own_servers_;
};

}  // namespace convoy::topologies
