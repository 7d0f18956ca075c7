// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: data_parallel, sync: all_reduce`: replicas whose gradients are summed by collectives, bucket by
/// bucket.
///
/// With `overlap` (default) a bucket's all-reduce starts when backward has completed its gradients, in order
/// on one communication stream, while backward goes on. Without, all gradients go as one message after
/// backward, unless `bucket` asks for several. The update waits for the last all-reduce. `micro_batches: M`
/// accumulates gradients over M parts of each device's share before they are sent.
///
/// `zero`: the states sharded over the devices (replica_program.h), at most as far as this stage.
/// `compression`: gradients sent as fp16, or only the largest of them, and more (compression.h). One device
/// sends nothing and does what `single` does.
///
/// `sync_every: H` is local SGD (averaging.h): parameters are averaged after every H steps instead, and a step
/// is the mean of H.
std::unique_ptr<Strategy> read_all_reduce(YamlMap& map);
/// What it reads, for `convoy show strategies`.
std::vector<KeyText> all_reduce_key_texts();

}  // namespace convoy::strategies
