// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

namespace convoy::inline runs {

/// This machine's memory or time does not suffice for what was asked; what() names the point.
class OutOfResources : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace convoy::runs
