// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// A step of a graph that is executed again and again on one device, whose memory is a cache of the host's
/// (CUDA's unified memory).
struct PagedRun {
  double makespan_us = 0;
  double in_bytes = 0, out_bytes = 0;  ///< over the host link
};

/// Operations one at a time in the graph's order. Each needs its inputs, its output and the memory_bytes of
/// its own and of the variables it reads, whole; what is not on the device comes in from the host, what has
/// been longest without use goes out to make room, and both take bytes / bandwidth, each way by itself. An
/// output that nobody needs any more goes without being sent. What an operation needs beyond the device's
/// memory comes in and goes out each time. No overlap of an operation with its own pages, no cost of faults:
/// their time would come on top.
PagedRun run_paged(const Dag& dag, double memory_bytes, double host_bandwidth_Bpus);

}  // namespace convoy::partition
