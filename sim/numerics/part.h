// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sim/numerics/tensor.h"
#include "sim/prove/box.h"

namespace convoy::inline numerics {

/// Some elements of a tensor: their values, images first, then channels, rows and columns (LayerMaps).
template <class Real>
struct Part {
  Box box;
  std::vector<Real> values;

  Part() = default;
  /// Zeros.
  explicit Part(Box of) : box(std::move(of)), values(static_cast<std::size_t>(box.volume())) {}
  Part(Box of, std::vector<Real> with) : box(std::move(of)), values(std::move(with)) {}
};

/// Values of the elements that both have and that are `where`, to replace those in `to`, or to be added to them.
template <class Real>
void copy_values(const Part<Real>& from, const Box& where, Part<Real>& to, bool adds = false);

/// Of one part, the elements of a box that it has.
template <class Real>
Part<Real> cut(const Part<Real>& from, const Box& box);

/// A part that has whole images, or a tensor of the same sizes: as a tensor.
template <class Real>
Tensor<Real> tensor_of(Part<Real> part, Shape shape);

}  // namespace convoy::numerics
