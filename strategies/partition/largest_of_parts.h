// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// The largest of values that parts have, and the largest of all other parts: what is largest without any one part.
struct LargestOfParts {
  double largest = -std::numeric_limits<double>::infinity();
  double of_others = largest;  ///< of the values that are not `part`'s
  Part part = no_part;  ///< whose the largest value is; none where no value is above the first `largest`

  void add(Part other, double value) {
    if (other == part)
      largest = std::max(largest, value);
    else if (value > largest)
      *this = {value, largest, other};
    else
      of_others = std::max(of_others, value);
  }
};

}  // namespace convoy::partition
