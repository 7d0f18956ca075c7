// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy {

/// `kind: torus`: hosts at the points of a grid whose rows are rings, first dimension running fastest;
/// messages correct one coordinate after the other, each the shorter way round.
std::shared_ptr<const Fabric> read_torus_fabric(YamlMap& map);

}  // namespace convoy
