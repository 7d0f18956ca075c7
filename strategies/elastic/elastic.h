// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace convoy::inline strategies {

/// `kind: elastic`: a data-parallel run whose devices come and go by a schedule, with the same global batch
/// throughout: each device adds up its micro-batches' gradients before they are summed over the devices.
/// A phase runs on the first so many devices of the machine. Source: "Automatic parallelization for efficient
/// distributed deep learning" (KAIST, 2019) and CoDDL (Hwang et al., NSDI 2021).
StrategyEntry elastic_entry();

}  // namespace convoy::strategies
