// SPDX-License-Identifier: MIT
#include "tests/extending/star_all_reduce.h"

namespace convoy {

Pattern star_all_reduce(const std::vector<EndpointId>& ranks) {
  Round up, down;
  up.fractions = down.fractions = {1.0};  // of the bytes, for every pair
  for (std::uint32_t rank = 1; rank < ranks.size(); ++rank) {
    up.pairs.push_back({rank, 0});
    down.pairs.push_back({0, rank});
  }
  return {{ranks}, ranks.size() > 1 ? std::vector<Round>{up, down} : std::vector<Round>{}};
}

}  // namespace convoy
