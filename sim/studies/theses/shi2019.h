// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "sim/studies/theses/thesis.h"

namespace convoy {

/// Shi 2019: ring all-reduce against parameter servers, and measurements of others of where either saturates
/// (results/published/saturation.yaml). @param jobs processes at a time
ThesisReproduction reproduce_shi2019(std::size_t jobs);

}  // namespace convoy
