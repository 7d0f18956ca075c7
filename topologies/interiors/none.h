// SPDX-License-Identifier: MIT
#pragma once

#include "topologies/interior.h"

namespace convoy::inline topologies {

/// `kind: none`: all devices of the server are in one place.
std::shared_ptr<const Interior> read_no_interior(YamlMap& map, std::uint32_t devices);

}  // namespace convoy::topologies
