// SPDX-License-Identifier: MIT
#include "sim/schedule/job.h"

#include <algorithm>

namespace convoy {

std::uint32_t Job::best_of(std::uint32_t gpus) const {
  return static_cast<std::uint32_t>(
      std::max_element(throughput.begin(), throughput.begin() + gpus + 1) - throughput.begin());
}

}  // namespace convoy
