// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <boost/container/flat_set.hpp>
#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

namespace convoy::inline models {

/// PyTorch's caching allocator of device memory, by its rules (github:pytorch/pytorch c10/cuda/
/// CUDACachingAllocator.cpp; results/published/process_memory.csv, `allocator rule`): requests are rounded to
/// 512 B; up to 1 MiB they lie in segments of 2 MiB, up to 10 MiB in segments of 20 MiB, above in a segment
/// of their own, rounded to 2 MiB. A request takes the smallest free block of its pool that is large enough
/// (of equal ones the oldest); what is left of it is split off where it is 512 B (of a large request: more
/// than 1 MiB). Freed blocks join free neighbours of their segment and stay reserved, until a segment that is
/// needed would exceed the device's memory: then all segments that are free as a whole are given back first.
class CachingAllocator {
 public:
  using Handle = std::uint32_t;

  /// @param capacity_bytes what the process may reserve
  explicit CachingAllocator(double capacity_bytes = std::numeric_limits<double>::infinity())
      : capacity_bytes_(capacity_bytes) {}

  Handle allocate(double bytes);
  void free(Handle handle);

  double reserved_bytes() const { return reserved_bytes_; }
  double most_reserved_bytes() const { return most_reserved_bytes_; }
  double most_allocated_bytes() const { return most_allocated_bytes_; }
  /// A request did not fit even after everything free had been given back. It was granted all the same.
  bool exceeded() const { return exceeded_; }

 private:
  static constexpr Handle none = 0xffffffff;
  struct Block {
    std::int64_t bytes = 0;
    Handle before = none, after = none;  ///< neighbours in the segment
    bool used = false, small = false;
    std::uint64_t age = 0;  ///< of equal blocks the one with the least is taken
  };
  struct Free {
    std::int64_t bytes;
    std::uint64_t age;
    Handle block;
    auto operator<=>(const Free&) const = default;
  };
  using Pool = boost::container::flat_set<Free>;  // small, and changed at every request

  Handle new_block(Block block);
  Pool& pool_of(const Block& block) { return free_[block.small ? 1 : 0]; }
  Handle new_segment(std::int64_t bytes, bool small);
  void give_back_free_segments();
  void join(Handle block, Handle neighbour);

  double capacity_bytes_;
  double reserved_bytes_ = 0, most_reserved_bytes_ = 0, allocated_bytes_ = 0, most_allocated_bytes_ = 0;
  bool exceeded_ = false;
  std::uint64_t next_age_ = 0;
  std::vector<Block> blocks_;
  std::vector<Handle> unused_;  ///< entries of blocks_ that are no block any more
  std::array<Pool, 2> free_;    ///< by pool: large, small
};

}  // namespace convoy::models
