// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: shared`: one medium, such as Wi-Fi or a hub; all messages of all hosts share its one link.
std::shared_ptr<const Fabric> read_shared_fabric(YamlMap& map);

}  // namespace convoy::topologies
