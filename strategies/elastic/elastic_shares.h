// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/training_graph.h"
#include "topologies/device.h"

namespace convoy::inline strategies {

/// Images of each micro-batch, by device.
using DealtBatch = std::vector<std::vector<std::int64_t>>;

/// Most images that forward and backward of one micro-batch can have in the device's memory, beside what
/// stays there; 0 where not even one fits.
std::int64_t largest_micro_batch(const TrainingGraph& graph, const DeviceType& type);

/// Whole micro-batches of `micro_batch` images (the last takes what is left of the batch) dealt out one after
/// the other: devices may differ by one micro-batch, or have none. The slowest has ceil(B / (n b)) of them.
DealtBatch deal_coarse(std::int64_t global_batch, std::uint32_t devices, std::int64_t micro_batch);

/// As many images for each device, give or take one; each device's share in as few micro-batches of at most
/// `micro_batch` images as can be, which differ by one image at most.
DealtBatch deal_uniform(std::int64_t global_batch, std::uint32_t devices, std::int64_t micro_batch);

}  // namespace convoy::strategies
