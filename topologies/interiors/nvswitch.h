// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// `kind: nvswitch`: each device has a port to a switch that joins any two at full speed; the ways to the
/// host's memory and NICs go over PCIe.
std::shared_ptr<const Interior> read_nvswitch_interior(YamlMap& map, std::uint32_t devices);
std::vector<KeyText> nvswitch_keys();

}  // namespace convoy::topologies
