// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: full_mesh`: a cable between every two hosts.
std::shared_ptr<const Fabric> read_full_mesh_fabric(YamlMap& map);

}  // namespace convoy::topologies
