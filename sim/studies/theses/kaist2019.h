// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// KAIST 2019: elastic data-parallel training. Published (abstract): expanding up to 6 times faster than
/// existing methods, shrinking almost instantly, scalability up to 2.97 times better. Devices, networks and
/// batches are ours (configs/papers/kaist2019.yaml, kaist2019-balance.yaml).
ThesisReproduction reproduce_kaist2019(std::size_t jobs);

}  // namespace convoy
