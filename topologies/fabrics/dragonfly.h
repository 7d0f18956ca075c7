// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: dragonfly`: groups of routers, each group a full mesh, and a cable between every two groups; the
/// way is minimal: at most one local, one global and one local cable (Kim, Dally, Scott, Abts:
/// Technology-driven, highly-scalable dragonfly topology, ISCA 2008).
std::shared_ptr<const Fabric> read_dragonfly_fabric(YamlMap& map);
std::vector<KeyText> dragonfly_keys();

}  // namespace convoy::topologies
