// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: fat_tree`: leaves below spines, or pods of them below cores. The way up is d-mod-k: chosen by the
/// destination alone, which spreads destinations evenly (Zahavi, "D-Mod-K routing providing non-blocking
/// traffic for shift permutations on real life fat trees", Technion 2010).
std::shared_ptr<const Fabric> read_fat_tree_fabric(YamlMap& map);
std::vector<KeyText> fat_tree_keys();

}  // namespace convoy::topologies
