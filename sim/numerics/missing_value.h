// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

namespace convoy::inline numerics {

/// A plan needs a value at a place and time at which it is not there: a message, an operation or a wait is
/// missing.
struct MissingValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace convoy::numerics
