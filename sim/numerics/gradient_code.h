// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/low_rank_shape.h"
#include "models/training_graph.h"
#include "sim/plan/meaning.h"

namespace convoy::inline numerics {

/// How a device makes a bucket's gradients smaller before they are sent, and gradients of what has come. It
/// keeps what it has left out (BucketMeaning::coding; the methods' sources stand in sim/lowering/compression.h
/// and low_rank.h).
///
/// half: rounded to half precision before and after they are summed. largest: the others stay in the residual.
/// levels, b bits: with two or more to one of 2^b levels from the least to the greatest of them, up or down at
/// random so that the mean is right; with one, to the mean of those that are not negative or to that of the
/// others, and the difference stays. signs: the sign times the mean magnitude, and the difference stays; votes:
/// the sign of the sum of signs, 0 where these are equally many. low_rank: two factors; the sum of the second
/// ones is where the next step begins, the first step begins with normal numbers, the same on all devices.
template <class Real>
class GradientCode {
 public:
  /// @param sender distinguishes devices, each of which rounds by chance of its own
  GradientCode(const TrainingGraph& graph, const BucketMeaning& bucket, std::uint64_t seed,
               std::uint64_t sender);

  /// What is sent of the bucket's gradients, its tensors one after the other.
  std::vector<Real> sent(std::vector<Real> gradients);
  /// Of low_rank: what is sent when the first message's sum has come.
  std::vector<Real> second_factors(const std::vector<Real>& sum);
  /// The sum of gradients.
  /// @param sum of the (first) messages  @param factors sum of second factors; empty: there are none
  /// @param members that were summed, each of which keeps its part of what low_rank leaves out
  std::vector<Real> decoded(std::vector<Real> sum, const std::vector<Real>& factors, double members);

 private:
  /// A tensor of the bucket: as it is (rank 0), or two factors.
  struct Tensor {
    std::size_t first = 0, elements = 0;  ///< of the bucket
    std::size_t rows = 0, columns = 0, rank = 0;
    std::vector<Real> left, right;  ///< factors, row by row
  };

  void keep_largest(std::vector<Real>& values);
  void round_to_levels(std::vector<Real>& values);
  void round_to_means(std::vector<Real>& values);
  void round_to_signs(std::vector<Real>& values);
  std::vector<Real> first_factors();

  BucketMeaning::Coding coding_;
  std::int64_t detail_;
  double kept_share_;
  std::uint64_t seed_, draws_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<Real> residual_;
};

}  // namespace convoy::numerics
