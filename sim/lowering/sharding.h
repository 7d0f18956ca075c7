// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/plan/plan.h"

namespace convoy::inline lowering {

/// Which device of a group has which index of an axis (an image, a channel, a row or a column).
struct Shards {
  std::vector<std::int64_t> counts;  ///< indices that each device has
  std::int64_t size = 0;             ///< of the axis: the sum of the counts
  std::vector<std::uint32_t> owner;  ///< of each index; empty for images, whose owners are not needed

  double share(std::size_t device) const {
    return static_cast<double>(counts[device]) / static_cast<double>(size);
  }
};

/// Rows and columns of images on a grid of devices. The devices are numbered row by row: with C columns,
/// device d is in row d / C and column d % C.
struct SpatialGrid {
  Shards rows, columns;                       ///< of the image: by row, and by column, of the grid
  std::vector<std::int64_t> heights, widths;  ///< rows and columns of the image that each device has

  std::size_t row_of(std::size_t device) const { return device / columns.counts.size(); }
  std::size_t column_of(std::size_t device) const { return device % columns.counts.size(); }
};

/// How a tensor is distributed over the devices of a group: each device has all of it, or a share of its
/// images, of its channels, or of the positions (row and column) of its images. With `partial`, each device
/// has a tensor of full size, and the values are the sum over the devices.
struct Sharding {
  enum class Over : std::uint8_t { replicate, partial, batch, channel, space };
  Over over = Over::replicate;
  std::shared_ptr<const Shards> shards = nullptr;     ///< not of `replicate` and `partial`
  std::shared_ptr<const SpatialGrid> grid = nullptr;  ///< of `space`

  bool is_split() const { return shards != nullptr; }
  double share(std::size_t device) const { return shards ? shards->share(device) : 1; }
};
/// Whether every device has the same values with both shardings.
bool same(const Sharding& a, const Sharding& b);

/// Consecutive indices, as evenly as possible: the first devices have one index more where the shares are not
/// equal.
Shards even_shards(std::int64_t size, std::size_t devices);
/// The same for images, without owners.
Shards even_images(std::int64_t images, std::size_t devices);
Shards shards_of(std::vector<std::uint32_t> owner, std::size_t devices);
/// Images of `height` rows and `width` columns on a grid of `rows` times `columns` devices, each of which has
/// consecutive rows and columns, as evenly as possible (even_shards).
Sharding split_on_grid(std::int64_t height, std::int64_t width, std::size_t rows, std::size_t columns);

/// What devices send each other, all at once: [from][to] in some unit.
using TrafficMatrix = std::vector<std::vector<double>>;

// Exchanges as rounds of a pattern. Fractions are of the tensor's bytes; zero messages are left out.

/// One message for each pair of devices of which one has something to send to the other.
std::vector<Round> at_once(const TrafficMatrix& traffic);
/// Whether the two shardings split different axes, so that every device has with one of them the same share
/// of what each device has with the other.
bool crosses(const Sharding& from, const Sharding& to);
/// What devices send each other when a tensor changes from one split to another. If the splits cross, i sends
/// j the share a_i b_j; otherwise the indices (channels, positions) whose owner changes are sent.
std::vector<Round> split_anew(const Sharding& from, const Sharding& to, std::size_t devices);
/// Ring all-gather: every device sends what it received last to the next one, (n - 1) times the tensor's
/// bytes in all. With R rings side by side, each carries 1/R.
/// @param rings orders of the devices (find_rings)
/// @param rotating shares of different sizes become one round (Round::rotation) instead of a round for each
/// step
std::vector<Round> ring_all_gather(const std::vector<std::vector<std::uint32_t>>& rings, const Shards& shards,
                                   bool rotating = false);
/// Ring reduce-scatter to the shares of `shards`: the same volume.
std::vector<Round> ring_reduce_scatter(const std::vector<std::vector<std::uint32_t>>& rings,
                                       const Shards& shards, bool rotating = false);

}  // namespace convoy::lowering
