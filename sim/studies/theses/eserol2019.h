// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// Eserol, Bilkent 2019: model parallelism by hypergraph partitioning of layer nodes. Published (abstract):
/// 93 % less communication volume than data parallelism, better balance and volume than layers. Networks,
/// batches and parts are ours (configs/papers/eserol2019.yaml).
ThesisReproduction reproduce_eserol2019(std::size_t jobs);

}  // namespace convoy
