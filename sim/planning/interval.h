// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "sim/results/result.h"

namespace convoy::inline planning {

/// Where four of five step times of this kind lie, as factors of the predicted one.
inline constexpr double interval_level = 0.8;
std::pair<double, double> step_interval(const RunResult& result);

}  // namespace convoy::planning
