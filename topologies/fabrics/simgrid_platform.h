// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: simgrid`: the network of a SimGrid platform file (XML, version 4). The cluster's hosts are the
/// file's, in its order.
std::shared_ptr<const Fabric> read_simgrid_fabric(YamlMap& map);
std::vector<KeyText> simgrid_keys();

}  // namespace convoy::topologies
