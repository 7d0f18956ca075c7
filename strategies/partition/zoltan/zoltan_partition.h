// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/partition/hypergraph.h"

namespace convoy::inline partition {

/// Whether convoy-zoltan lies beside the running program: it is built where CMake finds Zoltan and an MPI.
bool have_zoltan();

/// Zoltan's partitioner (PHG, serial, fixed seed) for the connectivity-1 metric, as it gives it: its parts
/// may exceed (1 + epsilon) of the mean. @throws std::runtime_error where convoy-zoltan is missing or fails.
Placement partition_by_zoltan(const Hypergraph& graph, Part count, double epsilon);

}  // namespace convoy::partition
