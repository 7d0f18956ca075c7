// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace convoy::inline search {

/// How far a search has come with a candidate.
enum class TrialState : std::uint8_t {
  open,       ///< at most a bound from a cost table is known
  planned,    ///< its plan fits, and bounds it better
  simulated,  ///< its figures are known
  too_large,  ///< does not fit in memory
  cannot_run,
  failed
};

}  // namespace convoy::search
