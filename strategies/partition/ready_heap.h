// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strategies/partition/dag.h"

namespace convoy::inline partition {

/// Who is next in the order of readiness: the earliest time, then the smallest rank. A binary heap that picks
/// the earlier of two children by arithmetic and not by a branch, which a processor could not foresee.
class ReadyHeap {
 public:
  struct Entry {
    double time_us;
    NodeId rank;         ///< different for each entry
    std::uint32_t item;  ///< whatever the owner knows it by
  };

  bool empty() const { return entries_.empty(); }
  void clear() { entries_.clear(); }

  void push(const Entry& entry) {
    entries_.push_back(entry);
    rise(entries_.size() - 1, entry);
  }

  Entry pop() {
    const Entry first = entries_.front(), last = entries_.back();
    entries_.pop_back();
    // The place at the top sinks to the bottom, as what was last mostly belongs there.
    std::size_t place = 0;
    for (std::size_t child = 1; child < entries_.size(); child = 2 * place + 1) {
      if (child + 1 < entries_.size()) child += before(entries_[child + 1], entries_[child]);
      entries_[place] = entries_[child];
      place = child;
    }
    if (!entries_.empty()) rise(place, last);
    return first;
  }

 private:
  static std::size_t before(const Entry& a, const Entry& b) {
    return static_cast<std::size_t>(a.time_us < b.time_us) |
           (static_cast<std::size_t>(a.time_us == b.time_us) & static_cast<std::size_t>(a.rank < b.rank));
  }

  void rise(std::size_t place, const Entry& entry) {
    while (place > 0 && before(entry, entries_[(place - 1) / 2])) {
      entries_[place] = entries_[(place - 1) / 2];
      place = (place - 1) / 2;
    }
    entries_[place] = entry;
  }

  std::vector<Entry> entries_;
};

}  // namespace convoy::partition
