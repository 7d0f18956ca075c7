// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// Marques, Coimbra 2016: convolutions shared out by filters. Published (abstract): 3.28 times as fast on 4
/// CPUs, 2.45 times on 3 GPUs, with 500 and 1500 filters. The network's bandwidth is set on the first only
/// (configs/papers/marques2016.yaml). Speedups are against one device of the same kind.
ThesisReproduction reproduce_marques2016(std::size_t jobs);

}  // namespace convoy
