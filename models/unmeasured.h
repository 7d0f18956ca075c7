// SPDX-License-Identifier: MIT
#pragma once

#include "models/framework.h"
#include "models/layer.h"

namespace convoy::inline models {

/// Whether no time of such a kernel was ever measured, so that others with as many FLOPs and bytes stand for it.
/// Attention is, where a framework computes it in one kernel.
bool is_unmeasured(const Layer& layer, Framework framework);

}  // namespace convoy::models
