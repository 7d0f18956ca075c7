// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/studies/regions/study_spec.h"

namespace convoy::inline studies {

/// A position of every input, in the order of StudySpec::inputs.
using StudyPoint = std::vector<double>;

/// Points by which shares of the space are estimated.
struct StudySample {
  std::vector<StudyPoint> points;
  /// Parts of equal size that are independent of each other, one behind the other; 1 for a grid, which has no
  /// error of sampling.
  std::size_t parts = 1;
};

/// A Sobol sequence whose every part is shifted by random numbers of the seed (randomised quasi-Monte Carlo:
/// Cranley and Patterson, SIAM J. Numer. Anal. 13, 1976; Owen, "Monte Carlo theory, methods and examples",
/// chapter 17), or the whole grid. @throws InputError: the grid has too many points
StudySample sample_points(const StudySpec& spec);

/// Every input in the middle of its range or list.
StudyPoint middle_point(const StudySpec& spec);

/// Root mean square of the inputs' distances from the middle, 0 to 1; of those that have an order.
double distance_from_middle(const StudySpec& spec, const StudyPoint& point);

/// "batch 64, rate 10 Gbps"
std::string text_of(const StudySpec& spec, const StudyPoint& point);

}  // namespace convoy::studies
