// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace convoy::inline replays {

/// A priority queue of numbered items with one key each: smallest key first, and for equal keys the smaller
/// number. Keys can be changed. `Place` says where the position of an item in the queue is stored:
/// place(number) is a std::uint32_t&, with `nowhere` for items that are not in the queue.
template <class Place>
class IndexedHeap {
 public:
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
  struct Entry {
    double key;
    std::uint32_t number;
  };

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  const Entry& top() const { return entries_.front(); }
  const std::vector<Entry>& entries() const { return entries_; }

  void set(std::uint32_t number, double key, Place place) {
    std::uint32_t at = place(number);
    if (at == nowhere) {
      at = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back({key, number});
    } else {
      entries_[at].key = key;
    }
    sift(at, place);
  }

  void remove(std::uint32_t number, Place place) {
    const std::uint32_t at = place(number);
    if (at == nowhere) return;
    place(number) = nowhere;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (at == entries_.size()) return;
    entries_[at] = last;
    sift(at, place);
  }

 private:
  static constexpr std::uint32_t arity = 4;
  static bool before(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.number < b.number;
  }

  void sift(std::uint32_t at, Place place) {
    const Entry entry = entries_[at];
    const auto size = static_cast<std::uint32_t>(entries_.size());
    while (at > 0) {
      const std::uint32_t parent = (at - 1) / arity;
      if (!before(entry, entries_[parent])) break;
      put(at, entries_[parent], place);
      at = parent;
    }
    for (std::uint32_t first = at * arity + 1; first < size; first = at * arity + 1) {
      std::uint32_t least = first;
      for (std::uint32_t child = first + 1; child < size && child < first + arity; ++child)
        if (before(entries_[child], entries_[least])) least = child;
      if (!before(entries_[least], entry)) break;
      put(at, entries_[least], place);
      at = least;
    }
    put(at, entry, place);
  }
  void put(std::uint32_t at, const Entry& entry, Place place) {
    entries_[at] = entry;
    place(entry.number) = at;
  }

  std::vector<Entry> entries_;
};

}  // namespace convoy::replays
