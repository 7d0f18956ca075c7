// SPDX-License-Identifier: MIT
#include "strategies/hybrid/windows.h"

#include <algorithm>
#include <set>

namespace convoy {
bool Halo::empty() const {
  return std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; });
}

Halo halo(const Layer& layer, ImageAxis axis, const Shards& input, const Shards& output) {
  const std::size_t n = input.counts.size();
  std::vector<std::set<std::int64_t>> needed(n);
  for (std::int64_t out = 0; out < output.size; ++out) {
    const std::uint32_t reader = output.owner[static_cast<std::size_t>(out)];
    for (const std::int64_t row : rows_read(layer, axis, input.size, out))
      if (input.owner[static_cast<std::size_t>(row)] != reader) needed[reader].insert(row);
  }
  Halo result{Traffic(n, std::vector<double>(n, 0.0)), std::vector<std::int64_t>(n, 0)};
  for (std::size_t reader = 0; reader < n; ++reader) {
    for (const std::int64_t row : needed[reader])
      ++result.rows[input.owner[static_cast<std::size_t>(row)]][reader];
    result.counts[reader] = static_cast<std::int64_t>(needed[reader].size());
  }
  return result;
}

}  // namespace convoy
