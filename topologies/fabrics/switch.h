// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: switch`: one non-blocking switch; a way is the sender's NIC up and the receiver's NIC down.
std::shared_ptr<const Fabric> read_switch_fabric(YamlMap& map);

}  // namespace convoy::topologies
