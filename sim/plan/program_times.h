// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "sim/plan/program_key.h"

namespace convoy::inline plans {

/// Time of each operation that a program lists on the device, in order, at the speed of its type and without
/// waiting.
/// Power, chance and the replay begin with the same times, which are computed once.
std::shared_ptr<const std::vector<double>> program_times_s(const TimedProgram& timed);

}  // namespace convoy::plans
