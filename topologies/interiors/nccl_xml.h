// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// `kind: nccl_xml`: the inside of a server as NCCL writes it (NCCL_TOPO_DUMP_FILE).
std::shared_ptr<const Interior> read_nccl_interior(YamlMap& map, std::uint32_t devices);
std::vector<KeyText> nccl_keys();

}  // namespace convoy::topologies
