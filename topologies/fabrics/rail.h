// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: rail`: rail-optimised. NIC r of each of `hosts_per_group` hosts is on leaf r of their group (a
/// rail), so that equal NICs reach each other through one switch; leaves of a group and groups are joined by
/// spines, each leaf with a cable to each spine, which the destination's number chooses (d-mod-k). NVIDIA DGX
/// SuperPOD reference architecture.
std::shared_ptr<const Fabric> read_rail_fabric(YamlMap& map);
std::vector<KeyText> rail_keys();

}  // namespace convoy::topologies
