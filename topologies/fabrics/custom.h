// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: custom`: switches and cables as the user lists them; the way of least latency, then of fewest
/// cables, then that of the cables listed first.
std::shared_ptr<const Fabric> read_custom_fabric(YamlMap& map);
std::vector<KeyText> custom_fabric_keys();

}  // namespace convoy::topologies
