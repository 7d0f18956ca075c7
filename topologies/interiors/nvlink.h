// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// `kind: nvlink`: links between pairs of devices, several of which may be bonded. A device does not pass on
/// what is another one's: pairs without a link go over PCIe, and so do the ways to the host's memory and
/// NICs.
std::shared_ptr<const Interior> read_nvlink_interior(YamlMap& map, std::uint32_t devices);
std::vector<KeyText> nvlink_keys();

}  // namespace convoy::topologies
