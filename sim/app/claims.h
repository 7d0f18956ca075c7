// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace convoy {

/// A figure that a paper states, or that follows from it by our own calculation, beside convoy's.
struct Claim {
  std::string what;       ///< "expansion, restart / overlapped"
  std::string setup;      ///< "4 to 8 devices, best of 6 models"
  bool published = true;  ///< false: our calculation or a condition of our own, not a figure of the paper
  double stated = 0, ours = 0;
  std::string unit;  ///< "x", "s", "%"; "" for plain numbers
  /// Where ours must lie for the claim to be borne out.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::string source;

  double error() const { return stated == 0 ? 0 : ours / stated - 1; }
  bool passed() const { return ours >= least && ours <= most; }
};

/// What a thesis claims, one experiment re-made.
struct Claims {
  std::string name, title;
  std::vector<Claim> rows;
  bool passed() const;
};

/// Elastic training (configs/papers/kaist2019.yaml): pauses of expanding and shrinking, gain of even shares.
Claims reproduce_kaist2019(std::size_t jobs);

/// Elastic sharing of a cluster among jobs (configs/papers/afs.yaml): average completion times.
Claims reproduce_afs(std::size_t jobs);

}  // namespace convoy
