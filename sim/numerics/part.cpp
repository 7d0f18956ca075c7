// SPDX-License-Identifier: MIT
#include "sim/numerics/part.h"

#include <array>

namespace convoy::inline numerics {
namespace {

constexpr std::size_t part_axes = 4;

/// Places of the indices of `common` in two sets that have them.
std::vector<std::pair<std::size_t, std::size_t>> paired_places(const IndexSet& common, const IndexSet& from,
                                                               const IndexSet& to) {
  const auto place = [](const IndexSet& set, std::int64_t index) {
    std::size_t before = 0;
    for (const IndexRange& range : set) {
      if (index < range.end) return before + static_cast<std::size_t>(index - range.begin);
      before += static_cast<std::size_t>(range.end - range.begin);
    }
    return before;
  };
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const IndexRange& range : common)
    for (std::int64_t i = range.begin; i < range.end; ++i) pairs.emplace_back(place(from, i), place(to, i));
  return pairs;
}

}  // namespace

template <class Real>
void copy_values(const Part<Real>& from, const Box& where, Part<Real>& to, bool adds) {
  const Box common = intersection(intersection(from.box, to.box), where);
  std::array<std::vector<std::pair<std::size_t, std::size_t>>, part_axes> at;
  std::array<std::size_t, part_axes> from_size{}, to_size{};
  for (std::size_t axis = 0; axis < part_axes; ++axis) {
    at[axis] = paired_places(common.of[axis], from.box.of[axis], to.box.of[axis]);
    from_size[axis] = static_cast<std::size_t>(count(from.box.of[axis]));
    to_size[axis] = static_cast<std::size_t>(count(to.box.of[axis]));
  }
  for (const auto& [from_image, to_image] : at[0])
    for (const auto& [from_channel, to_channel] : at[1])
      for (const auto& [from_row, to_row] : at[2]) {
        const std::size_t first =
            ((from_image * from_size[1] + from_channel) * from_size[2] + from_row) * from_size[3];
        const std::size_t into = ((to_image * to_size[1] + to_channel) * to_size[2] + to_row) * to_size[3];
        for (const auto& [from_column, to_column] : at[3]) {
          Real& value = to.values[into + to_column];
          value = (adds ? value : Real{0}) + from.values[first + from_column];
        }
      }
}

template <class Real>
Part<Real> cut(const Part<Real>& from, const Box& box) {
  Part<Real> part(intersection(from.box, box));
  copy_values(from, part.box, part);
  return part;
}

template <class Real>
Tensor<Real> tensor_of(Part<Real> part, Shape shape) {
  Tensor<Real> tensor;
  tensor.shape = std::move(shape);
  tensor.images = count(part.box[Box::images]);
  tensor.values = std::move(part.values);
  return tensor;
}

template void copy_values(const Part<double>&, const Box&, Part<double>&, bool);
template void copy_values(const Part<float>&, const Box&, Part<float>&, bool);
template Part<double> cut(const Part<double>&, const Box&);
template Part<float> cut(const Part<float>&, const Box&);
template Tensor<double> tensor_of(Part<double>, Shape);
template Tensor<float> tensor_of(Part<float>, Shape);

}  // namespace convoy::numerics
