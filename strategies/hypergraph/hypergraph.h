// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: hypergraph`: model parallelism by layer nodes. The training graph's nodes are partitioned
/// (node_hypergraph.h, hypergraph_partition.h); part p runs on device p, keeps the weights of its nodes, gets
/// the outputs it reads of other parts once a part and sends back partial gradients. What is sent in a step
/// is the connectivity-1 of the partition. Several micro-batches are under way at a time
/// (micro_batch_order.h); every part updates its weights at the end.
/// `method`: hypergraph, or what it is compared with: layerwise, even, random.
/// `replicas` (placed_replicas.h): the same parts on further devices. One part: exactly `single`.
StrategyEntry hypergraph_entry();

}  // namespace convoy::strategies
