// SPDX-License-Identifier: MIT
#include "models/caching_allocator.h"

#include <algorithm>
#include <cmath>

namespace convoy::inline models {
namespace {

constexpr std::int64_t mib = 1024 * 1024;
constexpr std::int64_t unit = 512, largest_small = mib, small_segment = 2 * mib, medium_segment = 20 * mib,
                       own_segment_from = 10 * mib, segment_unit = 2 * mib;

std::int64_t round_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

CachingAllocator::Handle CachingAllocator::new_block(Block block) {
  block.age = next_age_++;
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<Handle>(blocks_.size() - 1);
  }
  const Handle handle = unused_.back();
  unused_.pop_back();
  blocks_[handle] = block;
  return handle;
}

CachingAllocator::Handle CachingAllocator::new_segment(std::int64_t bytes, bool small) {
  const std::int64_t segment = small                      ? small_segment
                               : bytes < own_segment_from ? medium_segment
                                                          : round_up(bytes, segment_unit);
  if (reserved_bytes_ + static_cast<double>(segment) > capacity_bytes_) give_back_free_segments();
  reserved_bytes_ += static_cast<double>(segment);
  exceeded_ = exceeded_ || reserved_bytes_ > capacity_bytes_;
  most_reserved_bytes_ = std::max(most_reserved_bytes_, reserved_bytes_);
  return new_block({segment, none, none, false, small, 0});
}

void CachingAllocator::give_back_free_segments() {
  for (Pool& pool : free_)
    for (auto entry = pool.begin(); entry != pool.end();) {
      const Block& block = blocks_[entry->block];
      if (block.before != none || block.after != none) {
        ++entry;
        continue;
      }
      reserved_bytes_ -= static_cast<double>(block.bytes);
      unused_.push_back(entry->block);
      entry = pool.erase(entry);
    }
}

CachingAllocator::Handle CachingAllocator::allocate(double bytes) {
  const std::int64_t size = round_up(std::max<std::int64_t>(1, std::llround(std::ceil(bytes))), unit);
  const bool small = size <= largest_small;
  Pool& pool = free_[small ? 1 : 0];
  Handle handle = none;
  if (const auto found = pool.lower_bound({size, 0, 0}); found != pool.end()) {
    handle = found->block;
    pool.erase(found);
  } else {
    handle = new_segment(size, small);
  }
  const std::int64_t rest = blocks_[handle].bytes - size;
  if (small ? rest >= unit : rest > largest_small) {
    const Handle after = blocks_[handle].after;
    const Handle split = new_block({rest, handle, after, false, small, 0});
    if (after != none) blocks_[after].before = split;
    blocks_[handle].after = split;
    blocks_[handle].bytes = size;
    pool.insert({rest, blocks_[split].age, split});
  }
  blocks_[handle].used = true;
  allocated_bytes_ += static_cast<double>(blocks_[handle].bytes);
  most_allocated_bytes_ = std::max(most_allocated_bytes_, allocated_bytes_);
  return handle;
}

/// Adds a free neighbour to `block`, which is in no pool.
void CachingAllocator::join(Handle block, Handle neighbour) {
  Block& mine = blocks_[block];
  const Block& other = blocks_[neighbour];
  pool_of(other).erase({other.bytes, other.age, neighbour});
  if (mine.before == neighbour) {
    mine.before = other.before;
    if (other.before != none) blocks_[other.before].after = block;
  } else {
    mine.after = other.after;
    if (other.after != none) blocks_[other.after].before = block;
  }
  mine.bytes += other.bytes;
  mine.age = std::min(mine.age, other.age);
  unused_.push_back(neighbour);
}

void CachingAllocator::free(Handle handle) {
  Block& block = blocks_[handle];
  block.used = false;
  allocated_bytes_ -= static_cast<double>(block.bytes);
  for (const Handle neighbour : {block.before, block.after})
    if (neighbour != none && !blocks_[neighbour].used) join(handle, neighbour);
  pool_of(block).insert({block.bytes, block.age, handle});
}

}  // namespace convoy::models
