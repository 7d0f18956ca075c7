// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy {

/// `kind: chain`: a cable from each host to the next, none from the last to the first.
std::shared_ptr<const Fabric> read_chain_fabric(YamlMap& map);

}  // namespace convoy
