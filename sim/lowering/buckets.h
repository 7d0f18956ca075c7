// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline lowering {

/// Gradients that are sent as one message.
struct Bucket {
  double bytes = 0;
  OpId ready = 0;                       ///< the operation that completes its last gradient
  std::vector<std::size_t> parameters;  ///< indices into TrainingGraph::parameters
  // If gradients are sent in cycles (BucketCycles).
  std::uint32_t cycle = 0;  ///< at whose end it is sent, counted from the last one of the step
  double wait_s = 0;        ///< from its last gradient to that end
  bool operator==(const Bucket&) const = default;
};

/// At fixed intervals a thread of the host looks which gradients are complete, and sends these together
/// (Horovod: BackgroundThreadLoop in horovod/common/operations.cc). At which moments of the step it looks is
/// not known: the last gradient is assumed to be complete half an interval before it is sent.
struct BucketCycles {
  double length_s = 0;         ///< the interval; 0: there are no cycles
  std::vector<double> made_s;  ///< by operation of the graph, when it ends, from the beginning of the step
};

/// Fills buckets with gradients in the order in which backward completes them; a bucket closes when it holds
/// `bucket_bytes` or more, so one tensor may exceed it.
/// Source: PyTorch DistributedDataParallel (Li et al., VLDB 13(12), 2020, section 3.2.3), whose buckets close
/// likewise.
/// @param bucket_bytes infinity: one bucket for all.
std::vector<Bucket> fill_buckets(const TrainingGraph& graph, double bucket_bytes);

/// The same with the number of elements given for each parameter; a parameter without elements is in no
/// bucket.
/// @param whole_layers all tensors of a layer stay together: what an operation reads or makes is in one
/// bucket
/// @param first_bytes what bucket_bytes is for the first bucket; 0: bucket_bytes
/// @param cycles if they have a length, a bucket also closes at the end of each cycle
std::vector<Bucket> fill_buckets_of(const TrainingGraph& graph, double bucket_bytes,
                                    const std::vector<double>& elements, bool whole_layers = false,
                                    double first_bytes = 0, const BucketCycles& cycles = {});

/// One bucket a parameter tensor, in the same order.
std::vector<Bucket> bucket_per_tensor(const TrainingGraph& graph);

}  // namespace convoy::lowering
