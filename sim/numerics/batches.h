// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/numerics/data.h"
#include "sim/numerics/tensor.h"

namespace convoy::inline numerics {

/// In which order the images of a data set are learnt from: an epoch after the other, each in an order of its
/// own, drawn from the seed.
class BatchOrder {
 public:
  BatchOrder(std::uint64_t seed, std::int64_t images) : seed_(seed), images_(images) {}
  /// The image at a position of the endless sequence.
  std::int64_t image(std::int64_t position);

 private:
  const std::vector<std::int64_t>& epoch(std::int64_t number);

  std::uint64_t seed_;
  std::int64_t images_;
  std::map<std::int64_t, std::vector<std::int64_t>> epochs_;  ///< the last few
};

/// Images with their labels.
template <class Real>
struct LabelledImages {
  Tensor<Real> images;
  std::vector<std::int32_t> labels;
};

/// Images of a part of a data set, by their numbers.
template <class Real>
LabelledImages<Real> images_of(const LearningData::Part& part, const Shape& shape,
                               const std::vector<std::int64_t>& numbers);

}  // namespace convoy::numerics
