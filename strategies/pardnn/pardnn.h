// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: pardnn`: operations placed one by one on `parts` devices by the ParDNN partitioner
/// (strategies/partition), with times from the cost model and bytes from the training graph. Every device
/// runs its operations in the partitioner's order; a tensor that another device reads is sent there once, as
/// soon as it is made. Memory is accounted as the partitioner's emulator does. One device: exactly `single`.
/// With `micro_batches` or `replicas` (placed_replicas.h) updates are at the end of the step, where the
/// parameters are, with gradients that have come there.
/// Source: Qararyah et al., Parallel Computing 104-105, 2021 (arXiv 2008.08636).
StrategyEntry pardnn_entry();

}  // namespace convoy::strategies
