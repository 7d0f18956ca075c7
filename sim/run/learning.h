// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/numerics/numerics_spec.h"
#include "sim/results/result.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

/// Checks that the run's network and plan can learn from real values. @throws InputError
void check_numerics(const NumericsSpec& spec, const PreparedRun& run);

/// About how long learning_of takes on one core: three times the forward pass for each image learnt from, once
/// for each held-out one at each measurement, at a rate that was measured (docs/numerics.md). Of digits and
/// files the numbers of images that these data sets have.
double learning_time_s(const NumericsSpec& spec, const PreparedRun& run);

/// One line where that is more than a minute; else empty.
std::string slow_learning(const NumericsSpec& spec, const PreparedRun& run);

/// Trains the network of a run that was prepared with `numerics:`. @pre check_numerics
/// @throws InputError: the data, or the loss grows beyond all bounds
std::vector<LearningPoint> learning_of(const NumericsSpec& spec, const PreparedRun& run);

}  // namespace convoy::runs
