// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/yaml_map.h"
#include "sim/studies/claims/record.h"

namespace convoy::inline studies {

/// The largest number of images with which everything still fits on the fullest device: a record for one part
/// and for each of `parts`, with "parts", "batch", "fullest_share" (its peak over its memory) and
/// "throughput_images_per_s" of that batch. Found by halving between parts and 2 parts times what fits on
/// one, to a 16th of that. Where not even the least of these fits, "batch" and the throughput are 0 and
/// "fullest_share" is that of this least batch.
std::vector<Record> largest_batch_records(YamlMap& map, std::size_t jobs);

/// Makespans of partitioners on the training graphs of models, as docs/partition.md defines them: a record
/// for each model, number of parts and method, with "makespan_us".
std::vector<Record> makespan_records(YamlMap& map, std::size_t jobs);

}  // namespace convoy::studies
