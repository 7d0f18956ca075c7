// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace convoy::inline replays {

/// Distinguishes the classes of a folding: a 64-bit hash of an object and its neighbourhood.
using Colour = std::uint64_t;

/// Finaliser of splitmix64 (Steele, Lea & Flood, OOPSLA 2014): every input bit changes half of the output
/// bits.
inline Colour mix(Colour x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline Colour mix(Colour a, Colour b) {
  return mix(mix(a) ^ (b * 0xd6e8feb86659fd93u + 0x2545f4914f6cdd1du));
}
inline Colour bits(double value) { return std::bit_cast<Colour>(value); }

/// Numbers colours in the order in which they are first looked up. Open addressing; a colour is already a
/// hash.
class ColourTable {
 public:
  std::size_t size() const { return size_; }
  std::uint32_t number(Colour colour) {
    if (2 * size_ >= slots_.size()) widen();
    Slot& slot = find(colour);
    if (slot.number == nobody) slot = {colour, static_cast<std::uint32_t>(size_++)};
    return slot.number;
  }

  /// A colour will be looked up soon: large tables are in none of the processor's caches.
  void fetch(Colour colour) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[colour & (slots_.size() - 1)]);
  }

 private:
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
  struct Slot {
    Colour colour = 0;
    std::uint32_t number = nobody;
  };
  Slot& find(Colour colour) {
    std::size_t at = colour & (slots_.size() - 1);
    while (slots_[at].number != nobody && slots_[at].colour != colour) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void widen() {
    std::vector<Slot> narrow(std::max<std::size_t>(64, 4 * slots_.size()));
    narrow.swap(slots_);
    for (const Slot& slot : narrow)
      if (slot.number != nobody) find(slot.colour) = slot;
  }

  std::vector<Slot> slots_;  ///< a power of two
  std::size_t size_ = 0;
};

}  // namespace convoy::replays
