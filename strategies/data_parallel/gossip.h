// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: data_parallel, sync: gossip`: replicas that update their own parameters and average them with their
/// neighbours in every step (averaging.h).
std::unique_ptr<Strategy> read_gossip(YamlMap& map);
/// What it reads, for `convoy show strategies`.
std::vector<KeyText> gossip_key_texts();

}  // namespace convoy::strategies
