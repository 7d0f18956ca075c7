// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::inline topologies {

/// What `convoy show keys` tells of a cluster's parts. Each is told by the table that its reader goes by.
KeySection cluster_keys();
KeySection server_keys();
/// A server that is described where it is used, and may have a `name` there.
KeySection described_server_keys();
KeySection device_keys();
KeySection fabric_keys();
KeySection interconnect_keys();

/// What may be written for `sources` (sources.h).
ValueForm sources_form();

/// The keys of a device's `efficiency`, where it is a mapping.
std::vector<KeyText> efficiency_keys();

}  // namespace convoy::topologies
