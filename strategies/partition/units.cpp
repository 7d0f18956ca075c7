// SPDX-License-Identifier: MIT
#include "strategies/partition/units.h"

#include <algorithm>

namespace convoy::inline partition {

void collocate(const Dag& dag, const std::vector<double>& message_us, Part parts, Placement& placement) {
  std::vector<double> worth(parts);
  for (NodeId unit = 0; unit < dag.unit_count(); ++unit) {
    const auto members = dag.members(unit);
    if (members.size() == 1) continue;
    std::fill(worth.begin(), worth.end(), 0);
    for (const NodeId v : members) {
      worth[placement[v]] += dag.time_us(v);
      for (const NodeId w : dag.children(v))
        if (dag.unit(w) != unit) worth[placement[w]] += message_us[v];
      for (const NodeId u : dag.parents(v))
        if (dag.unit(u) != unit) worth[placement[u]] += message_us[u];
    }
    const auto best = static_cast<Part>(std::max_element(worth.begin(), worth.end()) - worth.begin());
    for (const NodeId v : members) placement[v] = best;
  }
}

}  // namespace convoy::partition
