// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/base/yaml_node.h"
#include "sim/plan/plan.h"
#include "topologies/machine.h"

namespace convoy::inline runs {

/// What a strategy's `algorithm: auto` came to: the algorithms of its collectives, the one with the most
/// bytes first, each once. Empty where the strategy has no `algorithm: auto`, or nothing to sum.
std::vector<std::string> chosen_algorithms(const YamlNode& strategy, const Plan& plan,
                                           const Machine& machine);

}  // namespace convoy::runs
