// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/layer.h"

namespace convoy::inline numerics {

/// Values of several images, one after the other, each of `shape`, the last axis fastest (NCHW).
/// `Real` is double or float throughout this room.
template <class Real>
struct Tensor {
  Shape shape;
  std::int64_t images = 0;
  std::vector<Real> values;

  Tensor() = default;
  /// Zeros.
  Tensor(Shape of, std::int64_t count)
      : shape(std::move(of)), images(count), values(static_cast<std::size_t>(count * elements(shape))) {}

  std::int64_t size() const { return elements(shape); }  ///< of an image
  Real* image(std::int64_t i) { return values.data() + i * size(); }
  const Real* image(std::int64_t i) const { return values.data() + i * size(); }
};

template <class Real>
using TensorPtr = std::shared_ptr<const Tensor<Real>>;

}  // namespace convoy::numerics
