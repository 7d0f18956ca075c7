// SPDX-License-Identifier: MIT
#include "sim/lowering/halo.h"

#include <algorithm>
#include <set>

namespace convoy::inline lowering {
namespace {

/// How many of the rows (or columns) of owner i reader j holds: [i][j].
std::vector<std::vector<std::int64_t>> held_along(const Layer& layer, ImageAxis axis, const Shards& input,
                                                  const Shards& output) {
  const std::size_t parts = input.counts.size();
  const std::vector<std::vector<std::int64_t>> rows = rows_held(layer, axis, input, output);
  std::vector<std::vector<std::int64_t>> held(parts, std::vector<std::int64_t>(parts, 0));
  for (std::size_t reader = 0; reader < parts; ++reader)
    for (const std::int64_t row : rows[reader]) ++held[input.owner[static_cast<std::size_t>(row)]][reader];
  return held;
}

}  // namespace

std::vector<std::vector<std::int64_t>> rows_held(const Layer& layer, ImageAxis axis, const Shards& input,
                                                 const Shards& output) {
  std::vector<std::set<std::int64_t>> held(input.counts.size());
  for (std::int64_t row = 0; row < input.size; ++row)
    held[input.owner[static_cast<std::size_t>(row)]].insert(row);
  for (std::int64_t out = 0; out < output.size; ++out)
    for (const std::int64_t row : rows_read(layer, axis, input.size, out))
      held[output.owner[static_cast<std::size_t>(out)]].insert(row);
  std::vector<std::vector<std::int64_t>> rows;
  for (const std::set<std::int64_t>& of : held) rows.emplace_back(of.begin(), of.end());
  return rows;
}

bool Halo::empty() const {
  return std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; });
}

Halo halo(const Layer& layer, const SpatialGrid& input, const SpatialGrid& output) {
  const std::size_t n = input.heights.size();
  const auto rows = held_along(layer, ImageAxis::height, input.rows, output.rows);
  const auto columns = held_along(layer, ImageAxis::width, input.columns, output.columns);
  Halo result{TrafficMatrix(n, std::vector<double>(n, 0.0)), std::vector<std::int64_t>(n, 0)};
  for (std::size_t owner = 0; owner < n; ++owner)
    for (std::size_t reader = 0; reader < n; ++reader) {
      if (owner == reader) continue;
      const std::int64_t got = rows[input.row_of(owner)][input.row_of(reader)] *
                               columns[input.column_of(owner)][input.column_of(reader)];
      result.positions[owner][reader] = static_cast<double>(got);
      result.counts[reader] += got;
    }
  return result;
}

}  // namespace convoy::lowering
