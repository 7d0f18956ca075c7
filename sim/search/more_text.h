// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace convoy::inline search {

/// By how much a value exceeds another, for a sentence that goes on "slower" or "dearer": "6.2 %", "12 %",
/// from twice as much on "2.5 times".
std::string more_text(double value, double than);

/// What reasons say of a candidate that ties with the best one.
inline constexpr const char* tie_text = "; a tie: the difference is within its 80 % interval";

}  // namespace convoy::search
