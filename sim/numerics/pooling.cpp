// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>

#include "sim/numerics/layer_kernels.h"

namespace convoy::inline numerics {
// Named, since what lambdas of the kernels capture must have linkage where files are compiled together.
namespace pooling_detail {

/// A window of one axis: [begin, end) of the input, and how many places it counts with padding.
struct PoolWindow {
  std::int64_t begin, end, counted;
};

PoolWindow pool_window(std::int64_t place, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                       std::int64_t size) {
  const std::int64_t begin = place * stride - padding;
  const std::int64_t end = std::min(begin + kernel, size + padding);
  return {std::max<std::int64_t>(begin, 0), std::min(end, size), end - begin};
}

/// Where a place of the output of adaptive pooling reads: floor(i n / m) to ceil((i + 1) n / m).
PoolWindow adaptive_window(std::int64_t place, std::int64_t size, std::int64_t places) {
  const std::int64_t begin = place * size / places, end = ((place + 1) * size + places - 1) / places;
  return {begin, end, end - begin};
}

/// Calls `visit(output, window of rows, window of columns, plane of the input)` for every value of the output.
template <class Visit>
void for_each_window(const Layer& layer, const Shape& input, Visit visit) {
  const std::int64_t h = input[1], w = input[2], out_h = layer.output[1], out_w = layer.output[2];
  const auto* pool = std::get_if<Pool>(&layer.kind);
  for (std::int64_t c = 0; c < input[0]; ++c)
    for (std::int64_t y = 0; y < out_h; ++y)
      for (std::int64_t x = 0; x < out_w; ++x) {
        const PoolWindow rows = pool ? pool_window(y, pool->kernel.h, pool->stride.h, pool->padding.h, h)
                                     : adaptive_window(y, h, out_h);
        const PoolWindow columns = pool ? pool_window(x, pool->kernel.w, pool->stride.w, pool->padding.w, w)
                                        : adaptive_window(x, w, out_w);
        visit((c * out_h + y) * out_w + x, rows, columns, c * h * w);
      }
}

bool takes_maximum(const Layer& layer) {
  const auto* pool = std::get_if<Pool>(&layer.kind);
  return pool && pool->mode == Pool::Mode::max;
}

/// The first of the largest values of a window.
template <class Real>
std::int64_t place_of_maximum(const Real* image, const PoolWindow& rows, const PoolWindow& columns,
                              std::int64_t plane, std::int64_t w) {
  std::int64_t best = plane + rows.begin * w + columns.begin;
  for (std::int64_t y = rows.begin; y < rows.end; ++y)
    for (std::int64_t x = columns.begin; x < columns.end; ++x)
      if (image[plane + y * w + x] > image[best]) best = plane + y * w + x;
  return best;
}

}  // namespace pooling_detail
using namespace pooling_detail;

template <class Real>
Tensor<Real> PoolKernels<Real>::forward(const KernelCall<Real>& call) {
  const Tensor<Real>& input = *call.inputs[0];
  const std::int64_t w = input.shape[2];
  const bool maximum = takes_maximum(*call.layer);
  Tensor<Real> output(call.layer->output, input.images);
  for (std::int64_t i = 0; i < input.images; ++i) {
    const Real* from = input.image(i);
    Real* to = output.image(i);
    for_each_window(
        *call.layer, input.shape,
        [&](std::int64_t place, const PoolWindow& rows, const PoolWindow& columns, std::int64_t plane) {
          if (maximum) {
            to[place] = from[place_of_maximum(from, rows, columns, plane, w)];
            return;
          }
          Real sum = 0;
          for (std::int64_t y = rows.begin; y < rows.end; ++y)
            for (std::int64_t x = columns.begin; x < columns.end; ++x) sum += from[plane + y * w + x];
          to[place] = sum / static_cast<Real>(rows.counted * columns.counted);
        });
  }
  return output;
}

template <class Real>
Tensor<Real> PoolKernels<Real>::data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient) {
  const Tensor<Real>& input = *call.inputs[0];
  const std::int64_t w = input.shape[2];
  const bool maximum = takes_maximum(*call.layer);
  Tensor<Real> result(input.shape, input.images);
  for (std::int64_t i = 0; i < input.images; ++i) {
    const Real* from = gradient.image(i);
    Real* to = result.image(i);
    for_each_window(
        *call.layer, input.shape,
        [&](std::int64_t place, const PoolWindow& rows, const PoolWindow& columns, std::int64_t plane) {
          if (maximum) {
            to[place_of_maximum(input.image(i), rows, columns, plane, w)] += from[place];
            return;
          }
          const Real share = from[place] / static_cast<Real>(rows.counted * columns.counted);
          for (std::int64_t y = rows.begin; y < rows.end; ++y)
            for (std::int64_t x = columns.begin; x < columns.end; ++x) to[plane + y * w + x] += share;
        });
  }
  return result;
}

template struct PoolKernels<double>;
template struct PoolKernels<float>;

}  // namespace convoy::numerics
