// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// `kind: nvidia_smi`: the inside of a server as `nvidia-smi topo -m` prints it.
std::shared_ptr<const Interior> read_nvidia_smi_interior(YamlMap& map, std::uint32_t devices);
std::vector<KeyText> nvidia_smi_keys();

}  // namespace convoy::topologies
