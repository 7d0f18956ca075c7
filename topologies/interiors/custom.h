// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// `kind: custom`: cables between gpu0, gpu1, …, `host` (the memory and, unless `nics_at` says otherwise, the
/// NICs) and switches, as the user lists them; the way of least latency, then of fewest cables, then that of
/// the cables listed first. Switches and the host pass on, devices do not.
std::shared_ptr<const Interior> read_custom_interior(YamlMap& map, std::uint32_t devices);
std::vector<KeyText> custom_interior_keys();

}  // namespace convoy::topologies
