// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "models/work.h"

namespace convoy {

/// Kinds of steps whose predictions are off alike: by the network (plain convolutions; or grouped and
/// depthwise ones and many small operations), the units that compute, and whether a step is short.
inline constexpr std::size_t residual_kind_count = 12;
std::string_view residual_kind_name(std::size_t kind);

/// The kind of a step of `works` on `images` images.
std::size_t residual_kind(const std::vector<Work>& works, double images, Precision precision);

/// Standard deviation of log(predicted / true) of steps of the kind, beside what the devices' parameters
/// leave open (topologies/catalog/software/residuals.yaml). @throws InputError where the file is wrong.
double residual_spread(std::size_t kind);

/// Of a normal distribution, 80 % lie within so many standard deviations of its middle.
inline constexpr double quantile_80 = 1.2815515655446004;

}  // namespace convoy
