// SPDX-License-Identifier: MIT
#include "sim/schedule/job.h"

#include <algorithm>

namespace convoy::inline schedule {

double Throughput::on(std::uint32_t gpus, std::uint32_t hosts) const {
  if (hosts == 0 || spread.empty()) return packed[gpus];
  return spread[std::min<std::size_t>(hosts, spread.size()) - 1][gpus];
}

std::uint32_t Throughput::best_of(std::uint32_t gpus) const {
  return static_cast<std::uint32_t>(std::max_element(packed.begin(), packed.begin() + gpus + 1) -
                                    packed.begin());
}

std::size_t Job::fastest_kind(std::uint32_t gpus) const {
  std::size_t best = 0;
  double images_per_s = 0;
  for (std::size_t kind = 0; kind < kinds->size(); ++kind)
    if (on(kind).most() >= gpus && on(kind).packed[gpus] > images_per_s) {
      best = kind;
      images_per_s = on(kind).packed[gpus];
    }
  return best;
}

}  // namespace convoy::schedule
