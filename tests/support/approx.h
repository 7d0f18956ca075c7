// SPDX-License-Identifier: MIT
#pragma once

#include <doctest/doctest.h>

#include <limits>

namespace convoy {

/// doctest's Approx with a tolerance that is a part of the larger of the two numbers and nothing besides:
/// doctest's own allows `epsilon` in absolute terms too, with which microseconds given in seconds would equal
/// anything. Zero equals zero alone.
inline doctest::Approx approx(double value) {
  return doctest::Approx(value).scale(std::numeric_limits<double>::min());
}

}  // namespace convoy
