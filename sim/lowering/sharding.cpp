// SPDX-License-Identifier: MIT
#include "sim/lowering/sharding.h"

#include <algorithm>

namespace convoy::inline lowering {
namespace {

/// @param first position on the ring whose share the device at position 0 sends first
Round rotating_round(const std::vector<std::vector<std::uint32_t>>& rings, const Shards& shards,
                     std::size_t first) {
  const std::size_t n = shards.counts.size();
  const auto of_ring = 1.0 / static_cast<double>(rings.size());
  Round round{{}, {}, static_cast<std::uint32_t>(n - 1)};
  RotatingShares& rotation = round.rotation.emplace();
  rotation.ring = static_cast<std::uint32_t>(n);
  rotation.first = static_cast<std::uint32_t>(first);
  for (const std::vector<std::uint32_t>& ring : rings)
    for (std::size_t i = 0; i < n; ++i) {
      round.pairs.emplace_back(ring[i], ring[(i + 1) % n]);
      rotation.shares.push_back(shards.share(ring[i]) * of_ring);
    }
  // In n - 1 repetitions a pair carries all shares but the one that would be next.
  for (std::size_t pair = 0; pair < round.pairs.size(); ++pair)
    round.fractions.push_back((of_ring - rotation.share(pair, round.repeat)) /
                              static_cast<double>(round.repeat));
  return round;
}

/// @param sent_by(position, step): position on the ring whose share the device at `position` passes on
template <class SentBy>
std::vector<Round> around(const std::vector<std::vector<std::uint32_t>>& rings, const Shards& shards,
                          bool rotating, SentBy sent_by) {
  const std::size_t n = shards.counts.size();
  const auto of_ring = 1.0 / static_cast<double>(rings.size());
  const bool even = std::all_of(shards.counts.begin(), shards.counts.end(),
                                [&](std::int64_t count) { return count == shards.counts.front(); });
  if (!even && rotating) return {rotating_round(rings, shards, sent_by(0, 0) % n)};
  std::vector<Round> rounds;
  for (std::size_t step = 0; step + 1 < n; ++step) {
    Round round{{}, {}, 1};
    for (const std::vector<std::uint32_t>& ring : rings)
      for (std::size_t i = 0; i < n; ++i) {
        const double share = shards.share(ring[sent_by(i, step) % n]);
        if (share == 0) continue;
        round.pairs.emplace_back(ring[i], ring[(i + 1) % n]);
        round.fractions.push_back(share * of_ring);
      }
    if (even) {  // all steps are alike
      round.fractions = {of_ring / static_cast<double>(n)};
      round.repeat = static_cast<std::uint32_t>(n - 1);
      return {round};
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

using Counts = std::vector<std::vector<std::int64_t>>;

/// IndexRanges that part i of one split and part j of another have in common, as [i][j].
Counts common(const Shards& from, const Shards& to) {
  Counts both(from.counts.size(), std::vector<std::int64_t>(to.counts.size(), 0));
  for (std::size_t index = 0; index < from.owner.size(); ++index) ++both[from.owner[index]][to.owner[index]];
  return both;
}

/// Positions that device i of one grid has and device j of another is to have.
TrafficMatrix moved(const SpatialGrid& from, const SpatialGrid& to, std::size_t devices, double positions) {
  const Counts rows = common(from.rows, to.rows), columns = common(from.columns, to.columns);
  TrafficMatrix traffic(devices, std::vector<double>(devices, 0.0));
  for (std::size_t i = 0; i < devices; ++i)
    for (std::size_t j = 0; j < devices; ++j)
      if (i != j)
        traffic[i][j] = static_cast<double>(rows[from.row_of(i)][to.row_of(j)] *
                                            columns[from.column_of(i)][to.column_of(j)]) /
                        positions;
  return traffic;
}

bool same(const Shards& a, const Shards& b) { return a.counts == b.counts && a.owner == b.owner; }

}  // namespace

bool same(const Sharding& a, const Sharding& b) {
  if (a.over != b.over) return false;
  if (a.shards == b.shards) return true;
  if (a.grid) return same(a.grid->rows, b.grid->rows) && same(a.grid->columns, b.grid->columns);
  return same(*a.shards, *b.shards);
}

Shards even_images(std::int64_t images, std::size_t devices) {
  const auto n = static_cast<std::int64_t>(devices);
  Shards shards;
  shards.size = images;
  for (std::int64_t d = 0; d < n; ++d) shards.counts.push_back(images / n + (d < images % n ? 1 : 0));
  return shards;
}

Shards even_shards(std::int64_t size, std::size_t devices) {
  Shards shards = even_images(size, devices);
  for (std::uint32_t d = 0; d < devices; ++d)
    shards.owner.insert(shards.owner.end(), static_cast<std::size_t>(shards.counts[d]), d);
  return shards;
}

Shards shards_of(std::vector<std::uint32_t> owner, std::size_t devices) {
  Shards shards;
  shards.size = static_cast<std::int64_t>(owner.size());
  shards.counts.assign(devices, 0);
  for (const std::uint32_t d : owner) ++shards.counts[d];
  shards.owner = std::move(owner);
  return shards;
}

Sharding split_on_grid(std::int64_t height, std::int64_t width, std::size_t rows, std::size_t columns) {
  SpatialGrid grid{even_shards(height, rows), even_shards(width, columns), {}, {}};
  Shards positions;
  positions.size = height * width;
  for (const std::int64_t h : grid.rows.counts)
    for (const std::int64_t w : grid.columns.counts) {
      grid.heights.push_back(h);
      grid.widths.push_back(w);
      positions.counts.push_back(h * w);
    }
  return {Sharding::Over::space, std::make_shared<Shards>(std::move(positions)),
          std::make_shared<SpatialGrid>(std::move(grid))};
}

bool crosses(const Sharding& from, const Sharding& to) {
  if (from.over != to.over) return true;
  const auto by_rows = [](const Sharding& s) { return s.grid->columns.counts.size() == 1; };
  const auto by_columns = [](const Sharding& s) { return s.grid->rows.counts.size() == 1; };
  return from.grid && ((by_rows(from) && by_columns(to)) || (by_columns(from) && by_rows(to)));
}

std::vector<Round> at_once(const TrafficMatrix& traffic) {
  Round round{{}, {}, 1};
  for (std::uint32_t i = 0; i < traffic.size(); ++i)
    for (std::uint32_t j = 0; j < traffic.size(); ++j)
      if (traffic[i][j] > 0) {
        round.pairs.emplace_back(i, j);
        round.fractions.push_back(traffic[i][j]);
      }
  if (round.pairs.empty()) return {};
  return {round};
}

std::vector<Round> split_anew(const Sharding& from, const Sharding& to, std::size_t devices) {
  if (!crosses(from, to)) {
    if (from.grid)
      return at_once(moved(*from.grid, *to.grid, devices, static_cast<double>(from.shards->size)));
    TrafficMatrix traffic(devices, std::vector<double>(devices, 0.0));
    const double index = 1 / static_cast<double>(from.shards->size);
    for (std::size_t i = 0; i < from.shards->owner.size(); ++i)
      if (from.shards->owner[i] != to.shards->owner[i])
        traffic[from.shards->owner[i]][to.shards->owner[i]] += index;
    return at_once(traffic);
  }
  Round round;
  AllToAll& messages = round.all_to_all.emplace();
  for (std::uint32_t d = 0; d < devices; ++d) {
    if (from.share(d) > 0) messages.senders.push_back({d, from.share(d)});
    if (to.share(d) > 0) messages.receivers.push_back({d, to.share(d)});
  }
  if (round.message_count() == 0) return {};
  return {round};
}

std::vector<Round> ring_all_gather(const std::vector<std::vector<std::uint32_t>>& rings, const Shards& shards,
                                   bool rotating) {
  const std::size_t n = shards.counts.size();
  return around(rings, shards, rotating, [n](std::size_t i, std::size_t step) { return i + n - step; });
}

std::vector<Round> ring_reduce_scatter(const std::vector<std::vector<std::uint32_t>>& rings,
                                       const Shards& shards, bool rotating) {
  const std::size_t n = shards.counts.size();
  // The sum that ends on position q begins on q + 1.
  return around(rings, shards, rotating,
                [n](std::size_t i, std::size_t step) { return i + 2 * n - 1 - step; });
}

}  // namespace convoy::lowering
