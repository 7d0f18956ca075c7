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
/// hash. A slot has half of its colour, which tells where it belongs however many slots there are, and nearly
/// always whether it is the one that is looked up.
class ColourTable {
 public:
  std::size_t size() const { return colours_.size(); }
  std::uint32_t number(Colour colour) {
    if (2 * size() >= slots_.size()) widen();
    const auto half = static_cast<std::uint32_t>(colour);
    std::size_t at = half & (slots_.size() - 1);
    for (; slots_[at].number != nobody; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].half == half && colours_[slots_[at].number] == colour) return slots_[at].number;
    slots_[at] = {half, static_cast<std::uint32_t>(size())};
    colours_.push_back(colour);
    return slots_[at].number;
  }

  /// A colour will be looked up soon: large tables are in none of the processor's caches.
  void fetch(Colour colour) const {
    if (!slots_.empty())
      __builtin_prefetch(&slots_[static_cast<std::uint32_t>(colour) & (slots_.size() - 1)]);
  }

 private:
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
  struct Slot {
    std::uint32_t half = 0, number = nobody;
  };
  void widen() {
    std::vector<Slot> narrow(std::max<std::size_t>(64, 2 * slots_.size()));
    narrow.swap(slots_);
    for (const Slot& slot : narrow) {
      if (slot.number == nobody) continue;
      std::size_t at = slot.half & (slots_.size() - 1);
      while (slots_[at].number != nobody) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;      ///< a power of two, at most 2^32: numbers end there, too
  std::vector<Colour> colours_;  ///< by number
};

}  // namespace convoy::replays
