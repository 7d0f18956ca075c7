// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/results/result.h"

namespace convoy::inline results {

/// Lists devices or links (RunResult::per_device, per_link): each by itself, or by classes. A class are devices that are
/// equal in everything but their names, or links that are and whose names differ in numbers only ("n0.nic.up", "n1.nic.up"): one
/// entry with their count and the name of the first.
template <class Entry>
class EntryList {
 public:
  /// @param entries empty; grows as devices or links are added @param most how many may be added
  EntryList(std::vector<Entry>& entries, bool by_class, std::size_t most)
      : entries_(entries), by_class_(by_class), most_(most) {}
  /// @param figures all of the entry but its name
  void add(std::string_view name, const Entry& figures);

 private:
  void append(std::string_view name, const Entry& figures);
  std::uint32_t& slot(std::uint64_t hash, std::string_view name, const Entry& figures);
  void widen();

  static constexpr std::uint32_t nobody = 0xffffffff;
  std::vector<Entry>& entries_;
  bool by_class_;
  std::size_t most_;
  std::vector<std::uint64_t> hashes_;  ///< by entry, if by class
  std::vector<std::uint32_t> slots_;   ///< entries by their hashes, open addressing; a power of two
};

extern template class EntryList<DeviceResult>;
extern template class EntryList<LinkResult>;

}  // namespace convoy::results
