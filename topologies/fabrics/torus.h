// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: torus`: hosts at the points of a grid whose rows are rings, first dimension running fastest;
/// messages correct one coordinate after the other, each the shorter way round. A host with a NIC of its own
/// (`nic_bandwidth`) has a link between it and its place in the grid, which what only passes does not cross.
std::shared_ptr<const Fabric> read_torus_fabric(YamlMap& map);
std::vector<KeyText> torus_keys();

}  // namespace convoy::topologies
