// SPDX-License-Identifier: MIT
#pragma once

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// AFS-L on a cluster of 64 GPUs. Published (Hwang et al., NSDI 2021, abstract): average completion times up
/// to 2.2, 2.7 and 3.1 times better than Themis, SRTF and Tiresias-L. The trace of jobs is ours
/// (configs/papers/afs.yaml).
ThesisReproduction reproduce_afs(std::size_t jobs);

}  // namespace convoy
