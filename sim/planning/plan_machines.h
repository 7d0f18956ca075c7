// SPDX-License-Identifier: MIT
#pragma once

#include "sim/base/keys.h"
#include "sim/planning/plan_spec.h"

namespace convoy::inline planning {

inline constexpr std::int64_t most_nodes = 100'000;  ///< of one kind of server

/// The parts of `nodes: {max: N}`.
Keys<std::int64_t> most_nodes_keys();

// Readers of keys of `plan:` that say which machines there are to choose from, where, and what their
// electricity costs. @throws InputError

void read_nodes(YamlMap& map, PlanSpec& spec);
void read_servers(YamlMap& map, PlanSpec& spec);
void read_electricity(YamlMap& map, PlanSpec& spec);
/// @pre the price table is known
void read_regions(YamlMap& map, PlanSpec& spec);

}  // namespace convoy::planning
