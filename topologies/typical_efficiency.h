// SPDX-License-Identifier: MIT
#pragma once

#include "sim/base/yaml_node.h"
#include "topologies/device.h"

namespace convoy::inline topologies {

/// A device's mapping that states no `efficiency`, with those of the device of the program's catalogue that is
/// nearest to it: of its kind, of its generation where the catalogue has that, and then by peak and bandwidth
/// (sum of the distances of their logarithms). With them come its `launch_overhead` and `issue_factor`, unless
/// stated, scaled as {base: ...} scales them; `evidence` says that nobody measured the device, and `sources` that
/// the efficiencies are unstated.
/// @param stated what the mapping says of everything else
YamlNode with_typical_efficiency(const YamlNode& node, const DeviceType& stated);

/// Whether a device has efficiencies for want of its own.
bool states_no_efficiency(const DeviceType& device);

}  // namespace convoy::topologies
