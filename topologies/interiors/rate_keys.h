// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/base/keys.h"
#include "topologies/cable_list.h"

namespace convoy::inline topologies {

/// The keys `efficiency`, `bandwidth` and `latency` of links between devices, read into the draft's fields
/// efficiency, bandwidth_Bps (as payload can use it) and latency_s.
/// @param whose "of a device's lanes"
template <class Draft>
Keys<Draft> rate_keys(const std::string& whose) {
  return {custom_key<Draft>("efficiency", "100%", forms::share(true),
                            "of the nominal bandwidth that payload can use",
                            [](YamlMap& map, Draft& draft) { draft.efficiency = read_payload_share(map); }),
          custom_key<Draft>("bandwidth", "", forms::quantity(Dimension::bandwidth, true),
                            whose + ", in one direction",
                            [](YamlMap& map, Draft& draft) {
                              draft.bandwidth_Bps =
                                  draft.efficiency * map.quantity("bandwidth", Dimension::bandwidth, true);
                            })
              .told_required(),
          optional_quantity_key<Draft>("latency", "0s", Dimension::time, false, "one way between two devices",
                                       [](Draft& draft) -> double& { return draft.latency_s; })};
}

}  // namespace convoy::topologies
