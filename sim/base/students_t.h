// SPDX-License-Identifier: MIT
#pragma once

namespace convoy::inline base {

/// The value below which Student's t lies with probability `share`, as the mean of a sample of unknown variance
/// does, in its own standard deviations.
/// @param degrees_of_freedom more than 0 @param share more than 0 and less than 1
/// @throws std::domain_error for others
double students_t_quantile(double degrees_of_freedom, double share);

}  // namespace convoy::base
