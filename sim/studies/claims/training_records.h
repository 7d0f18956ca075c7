// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/yaml_map.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// What networks learn: the runs of an experiment with `numerics:`. An entry
///   {trained: papers/NAME, set: [key=value, …], target: 0.9, best_of: numerics.learning_rate}
/// gives the record of each run (records_of) with "steps_to_target" and "time_to_target_s", those of the first
/// measurement at which so large a share of the held-out images is classified right (infinite where none is),
/// and "best_accuracy", the greatest share of all. With `best_of`, of the runs that differ in this key of the
/// sweep alone only the one is left that reaches the target soonest, with "tried", their number.
/// @throws InputError: the experiment has no `numerics:`, or its sweep does not vary `best_of`
std::vector<Record> trained_records(YamlMap& map, std::size_t jobs);

/// Whether plans compute what one device computes (docs/proof.md). An entry
///   {proofs_of: papers/NAME, set: [key=value, …], sweep: {…}}
/// gives a record for each point, with its coordinates, "model", "strategy", "devices", "global_batch" and
/// "tasks", the number of tasks that were looked at; "proved" is 1 where the plan is, else 0, and "exact" is 1
/// where it is and the strategy is allowed nothing (no compression, no old gradients, and no normalization over
/// fewer images).
std::vector<Record> proof_records(YamlMap& map, std::size_t jobs);

}  // namespace convoy::studies
