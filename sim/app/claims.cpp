// SPDX-License-Identifier: MIT
#include "sim/app/claims.h"

#include <algorithm>

namespace convoy {

bool Claims::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const Claim& row) { return row.passed(); });
}

}  // namespace convoy
