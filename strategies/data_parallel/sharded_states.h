// SPDX-License-Identifier: MIT
#pragma once

#include <array>

#include "strategies/data_parallel/all_reduce_options.h"
#include "strategies/strategy.h"

namespace convoy {

/// Data-parallel training whose states are cut evenly over all devices: ZeRO (Rajbhandari, Rasley, Ruwase &
/// He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020, sections 5 and 7).
///
/// Stage 1 shards the optimizer's states: the gradients of a bucket are reduce-scattered when backward has
/// completed them (with micro-batches: in the last), every device updates 1/N of the parameters, and
/// all-gathers bring the new parameters to all, bucket by bucket, after the update.
/// Stage 2 shards the gradients as well: a bucket of whole layers is there from its first gradient until it
/// has been reduce-scattered, in every micro-batch, which adds to the device's shard. Two buckets may be
/// there at a time: backward begins to fill a third when the first is gone (as DeepSpeed's `overlap_comm`
/// does). Stage 3 shards the parameters as well: a bucket's are all-gathered before its layers run forward,
/// freed after, and gathered again for backward. The next bucket's are gathered while one's are in use.
/// Without overlap computation waits for every message, and one bucket is there at a time.
///
/// A device sends (N-1)/N of so many times the parameters in the precision of gradients: 2 in stage 1 (as
/// much as an all-reduce), M + 1 in stage 2 and 3 M in stage 3 with M micro-batches. What recomputation reads
/// again is gathered again, but for a bucket that is there.
/// @throws InputError where the algorithm cannot scatter on this cluster, or the batch does not divide.
/// @pre options.zero is 1, 2 or 3; the machine has several devices and the model parameters
Plan plan_sharded(const AllReduceOptions& options, const StrategyInput& input);

/// Bytes of states on each of `devices` devices, throughout the step. With psi parameters, mixed precision
/// and Adam (K = 12: fp32 parameters and two moments): stage 1 (2 + 2) psi + K psi/N, stage 2 2 psi + (2 + K)
/// psi/N, stage 3 (2 + 2 + K) psi/N (section 5). In fp32 there are no copies of the parameters beside those
/// that all devices compute with.
std::array<double, memory_class_count> sharded_resident_bytes(const TrainingGraph& graph, int stage,
                                                              double devices);

}  // namespace convoy
