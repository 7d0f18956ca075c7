// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/fabric.h"

namespace convoy::inline topologies {

/// `kind: sites`: hosts in several places, each with a fabric of its own, joined by a WAN: a cable between
/// every two sites. Each site's fabric has one host more, the gateway, through which all goes that leaves it.
std::shared_ptr<const Fabric> read_sites_fabric(YamlMap& map);
std::vector<KeyText> sites_keys();

}  // namespace convoy::topologies
