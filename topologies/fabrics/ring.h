// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: ring`: each host has a cable to the next one; messages go the shorter way, in a tie towards the
/// next host.
std::shared_ptr<const Fabric> read_ring_fabric(YamlMap& map);

}  // namespace convoy::topologies
