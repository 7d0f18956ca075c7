// SPDX-License-Identifier: MIT
#pragma once

#include "strategies/partition/slicing.h"

namespace convoy::inline partition {

/// Maps linear clusters to parts (ParDNN, mapping): each primary cluster is a part; a secondary one joins the
/// part that it talks to most where its slack window has room there, and what is left goes where load and
/// messages are least.
Placement map_clusters(const PartitionTask& task, const Slices& slices);

}  // namespace convoy::partition
