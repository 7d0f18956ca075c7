// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace convoy::inline runs {

/// Random numbers from a seed, the same on every machine: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). The
/// distributions of the standard library differ between implementations, and results must not.
class SeededDice {
 public:
  explicit SeededDice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL) {}
  double uniform() {  ///< in (0, 1]
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return (static_cast<double>(z >> 11) + 1) * 0x1.0p-53;
  }
  double exponential(double rate) { return -std::log(uniform()) / rate; }
  /// With mean 0 and standard deviation 1 (Box, Muller, Annals of Mathematical Statistics 29, 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace convoy::runs
