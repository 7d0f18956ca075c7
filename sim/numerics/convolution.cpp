// SPDX-License-Identifier: MIT
// Convolutions as products of matrices (im2col; Chellapilla, Puri & Simard, IWFHR 2006), and linear layers.
#include <Eigen/Core>
#include <algorithm>

#include "sim/numerics/layer_kernels.h"

namespace convoy::inline numerics {
// Named, since what lambdas of the kernels capture must have linkage where files are compiled together.
namespace convolution_detail {

template <class Real>
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using ConstMap = Eigen::Map<const Matrix<Real>>;
template <class Real>
using Map = Eigen::Map<Matrix<Real>>;

/// Sizes of a convolution, of one group.
struct ConvolutionSizes {
  explicit ConvolutionSizes(const Layer& layer, const Shape& input)
      : conv(std::get<Conv2d>(layer.kind)),
        in(input[0] / conv.groups),
        out(layer.output[0] / conv.groups),
        h(input[1]),
        w(input[2]),
        out_h(layer.output[1]),
        out_w(layer.output[2]),
        patch(in * conv.kernel.h * conv.kernel.w),
        places(out_h * out_w) {}

  const Conv2d& conv;
  std::int64_t in, out, h, w, out_h, out_w;
  std::int64_t patch;   ///< values that a place of the output reads
  std::int64_t places;  ///< of the output

  /// Calls `visit(row of the patch, place of the output, place of the input)` for all values that are inside.
  template <class Visit>
  void for_each(Visit visit) const {
    std::int64_t row = 0;
    for (std::int64_t c = 0; c < in; ++c)
      for (std::int64_t ky = 0; ky < conv.kernel.h; ++ky)
        for (std::int64_t kx = 0; kx < conv.kernel.w; ++kx, ++row)
          for (std::int64_t y = 0; y < out_h; ++y) {
            const std::int64_t from_y = y * conv.stride.h + ky * conv.dilation.h - conv.padding.h;
            if (from_y < 0 || from_y >= h) continue;
            for (std::int64_t x = 0; x < out_w; ++x) {
              const std::int64_t from_x = x * conv.stride.w + kx * conv.dilation.w - conv.padding.w;
              if (from_x >= 0 && from_x < w) visit(row, y * out_w + x, (c * h + from_y) * w + from_x);
            }
          }
  }

  template <class Real>
  void gather(const Real* image, Matrix<Real>& patches) const {
    patches.setZero();
    Real* to = patches.data();
    for_each([&](std::int64_t row, std::int64_t place, std::int64_t from) {
      to[row * places + place] = image[from];
    });
  }
  template <class Real>
  void scatter(const Matrix<Real>& patches, Real* image) const {
    const Real* from = patches.data();
    for_each([&](std::int64_t row, std::int64_t place, std::int64_t to) {
      image[to] += from[row * places + place];
    });
  }
};

/// Rows that a linear layer works on: of all images, and of all places where it works along the last axis.
template <class Real>
std::int64_t rows_of(const Tensor<Real>& tensor, std::int64_t features) {
  return static_cast<std::int64_t>(tensor.values.size()) / features;
}

}  // namespace convolution_detail
using namespace convolution_detail;

template <class Real>
Tensor<Real> ConvolutionKernels<Real>::forward(const KernelCall<Real>& call) {
  const Tensor<Real>& input = *call.inputs[0];
  const ConvolutionSizes sizes(*call.layer, input.shape);
  Tensor<Real> output(call.layer->output, input.images);
  Matrix<Real> patches(sizes.patch, sizes.places);
  for (std::int64_t i = 0; i < input.images; ++i)
    for (std::int64_t g = 0; g < sizes.conv.groups; ++g) {
      sizes.gather(input.image(i) + g * sizes.in * sizes.h * sizes.w, patches);
      const ConstMap<Real> weight(call.parameters[0]->data() + g * sizes.out * sizes.patch, sizes.out,
                                  sizes.patch);
      Map<Real> to(output.image(i) + g * sizes.out * sizes.places, sizes.out, sizes.places);
      to.noalias() = weight * patches;
      if (!sizes.conv.bias) continue;
      for (std::int64_t o = 0; o < sizes.out; ++o)
        to.row(o).array() += (*call.parameters[1])[static_cast<std::size_t>(g * sizes.out + o)];
    }
  return output;
}

template <class Real>
Tensor<Real> ConvolutionKernels<Real>::data_gradient(const KernelCall<Real>& call,
                                                     const Tensor<Real>& gradient) {
  const Tensor<Real>& input = *call.inputs[0];
  const ConvolutionSizes sizes(*call.layer, input.shape);
  Tensor<Real> result(input.shape, input.images);
  Matrix<Real> patches(sizes.patch, sizes.places);
  for (std::int64_t i = 0; i < input.images; ++i)
    for (std::int64_t g = 0; g < sizes.conv.groups; ++g) {
      const ConstMap<Real> weight(call.parameters[0]->data() + g * sizes.out * sizes.patch, sizes.out,
                                  sizes.patch);
      const ConstMap<Real> from(gradient.image(i) + g * sizes.out * sizes.places, sizes.out, sizes.places);
      patches.noalias() = weight.transpose() * from;
      sizes.scatter(patches, result.image(i) + g * sizes.in * sizes.h * sizes.w);
    }
  return result;
}

template <class Real>
std::vector<std::vector<Real>> ConvolutionKernels<Real>::weight_gradient(const KernelCall<Real>& call,
                                                                         const Tensor<Real>& gradient) {
  const Tensor<Real>& input = *call.inputs[0];
  const ConvolutionSizes sizes(*call.layer, input.shape);
  const std::int64_t channels = sizes.out * sizes.conv.groups;
  std::vector<std::vector<Real>> result{
      std::vector<Real>(static_cast<std::size_t>(channels * sizes.patch), Real{0})};
  if (sizes.conv.bias) result.emplace_back(static_cast<std::size_t>(channels), Real{0});
  Matrix<Real> patches(sizes.patch, sizes.places);
  for (std::int64_t i = 0; i < input.images; ++i)
    for (std::int64_t g = 0; g < sizes.conv.groups; ++g) {
      sizes.gather(input.image(i) + g * sizes.in * sizes.h * sizes.w, patches);
      const ConstMap<Real> from(gradient.image(i) + g * sizes.out * sizes.places, sizes.out, sizes.places);
      Map<Real> to(result[0].data() + g * sizes.out * sizes.patch, sizes.out, sizes.patch);
      to.noalias() += from * patches.transpose();
      if (!sizes.conv.bias) continue;
      for (std::int64_t o = 0; o < sizes.out; ++o)
        result[1][static_cast<std::size_t>(g * sizes.out + o)] += from.row(o).sum();
    }
  return result;
}

template <class Real>
Tensor<Real> LinearKernels<Real>::forward(const KernelCall<Real>& call) {
  const auto& linear = std::get<Linear>(call.layer->kind);
  const Tensor<Real>& input = *call.inputs[0];
  const std::int64_t in = input.shape.back(), out = linear.out_features, rows = rows_of(input, in);
  Tensor<Real> output(call.layer->output, input.images);
  Map<Real> to(output.values.data(), rows, out);
  to.noalias() = ConstMap<Real>(input.values.data(), rows, in) *
                 ConstMap<Real>(call.parameters[0]->data(), out, in).transpose();
  if (linear.bias) to.rowwise() += ConstMap<Real>(call.parameters[1]->data(), 1, out).row(0);
  return output;
}

template <class Real>
Tensor<Real> LinearKernels<Real>::data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient) {
  const Tensor<Real>& input = *call.inputs[0];
  const std::int64_t in = input.shape.back(), out = std::get<Linear>(call.layer->kind).out_features,
                     rows = rows_of(input, in);
  Tensor<Real> result(input.shape, input.images);
  Map<Real>(result.values.data(), rows, in).noalias() =
      ConstMap<Real>(gradient.values.data(), rows, out) * ConstMap<Real>(call.parameters[0]->data(), out, in);
  return result;
}

template <class Real>
std::vector<std::vector<Real>> LinearKernels<Real>::weight_gradient(const KernelCall<Real>& call,
                                                                    const Tensor<Real>& gradient) {
  const auto& linear = std::get<Linear>(call.layer->kind);
  const Tensor<Real>& input = *call.inputs[0];
  const std::int64_t in = input.shape.back(), out = linear.out_features, rows = rows_of(input, in);
  std::vector<std::vector<Real>> result{std::vector<Real>(static_cast<std::size_t>(out * in))};
  const ConstMap<Real> from(gradient.values.data(), rows, out);
  Map<Real>(result[0].data(), out, in).noalias() =
      from.transpose() * ConstMap<Real>(input.values.data(), rows, in);
  if (linear.bias) {
    result.emplace_back(static_cast<std::size_t>(out));
    Map<Real>(result[1].data(), 1, out) = from.colwise().sum();
  }
  return result;
}

void fix_blocks_of_products() { Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20); }

template struct ConvolutionKernels<double>;
template struct ConvolutionKernels<float>;
template struct LinearKernels<double>;
template struct LinearKernels<float>;

}  // namespace convoy::numerics
