// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace convoy::inline numerics {

/// Random numbers by what they are for, so that who draws first does not matter: splitmix64's finalizer
/// (Steele, Lea & Flood, OOPSLA 2014) over seed, stream and counter.
inline std::uint64_t drawn_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const auto mixed = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  const std::uint64_t golden = 0x9e3779b97f4a7c15u;
  return mixed(mixed(mixed(seed + golden) + (stream + 1) * golden) + (counter + 1) * golden);
}

/// Uniform in [0, 1).
inline double drawn_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return static_cast<double>(drawn_bits(seed, stream, counter) >> 11) * 0x1.0p-53;
}

/// Normal, of mean 0 and deviation 1 (Box and Muller, Ann. Math. Stat. 29(2), 1958).
inline double drawn_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const double radius = std::sqrt(-2 * std::log(1 - drawn_uniform(seed, stream, 2 * counter)));
  return radius * std::cos(2 * std::numbers::pi * drawn_uniform(seed, stream, 2 * counter + 1));
}

/// What random numbers are for: the stream of drawn_bits is one of these times 2^32, plus an index.
enum class DrawnFor : std::uint64_t { parameters = 1, dropout, order, prototypes, noise, rounding, factors };
inline std::uint64_t drawn_stream(DrawnFor what, std::uint64_t index) {
  return (static_cast<std::uint64_t>(what) << 32) + index;
}

}  // namespace convoy::numerics
