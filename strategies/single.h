// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy {

/// `kind: single`: the first device does everything; with `micro_batches: M` the batch in M parts whose
/// gradients are accumulated before one update. Step = M (forward + backward of batch/M) + update.
std::unique_ptr<Strategy> read_single(YamlMap& map);

}  // namespace convoy
