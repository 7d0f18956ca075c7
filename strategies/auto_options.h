// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// What `strategy: {kind: auto}` makes as small as possible (throughput: as large).
enum class Objective : std::uint8_t { step_time, throughput, cost, energy, memory };
inline const std::vector<std::string> objective_names{"step_time", "throughput", "cost", "energy", "memory"};

/// What a mapping of `kind: auto` says; what simulates searches (sim/run/search).
struct AutoOptions {
  Objective objective = Objective::step_time;
  SourcePos objective_pos;
  const YamlNode* candidates = nullptr;  ///< a list with entries; nullptr: those of every kind
  SourcePos candidates_pos;
  std::optional<std::int64_t> budget;  ///< simulations at most
};

const Keys<AutoOptions>& auto_keys();

/// The row of a kind that no plan comes of: reading it as a part of another strategy is an error.
StrategyEntry auto_entry();

}  // namespace convoy::strategies
