// SPDX-License-Identifier: MIT
#include "sim/costs/peak_share.h"

#include <algorithm>

#include "sim/costs/tensor_rate.h"

namespace convoy::inline costs {
namespace {

double saturation(double size, double half) { return half > 0 ? size / (size + half) : 1.0; }

// Tensor cores load 16 bytes at a time: 8 channels of 2 bytes, 4 of tf32 (NVIDIA, Convolutional Layers User's
// Guide, "Tensor Core Requirements"). Grouped convolutions have a class of their own instead.
bool fits_tensor_cores(const Work& work, Precision precision) {
  if (precision == Precision::fp32 || work.groups > 1) return true;
  const std::int64_t multiple = 16 / element_bytes(precision);
  return work.in_channels % multiple == 0 && work.out_channels % multiple == 0;
}

/// Multiprocessors compute the result of a convolution in tiles of some pixels and about 64 channels: a layer
/// with more channels has more tiles for the same pixels, and fills the device with fewer images. A tile that
/// channels fill only in part counts as a whole one; `half_outputs` of the share of peak accounts for that.
/// Never fewer than one, also if channels are unknown: for few channels, libraries have narrower tiles.
double tiles_across(double channels, const Efficiency& efficiency) {
  return channels > 0 ? std::max(1.0, (channels + efficiency.half_outputs) / 64) : 1;
}

/// Share of the device that has work. @param rows output pixels of all images
double filled_share(const Work& work, KernelClass kernel, double rows, const Efficiency& efficiency) {
  const bool matmul = kernel == KernelClass::matmul;
  if (work.phase == Phase::weight_gradient && !matmul) return saturation(rows, efficiency.half_weight_rows);
  double channels = static_cast<double>(work.out_channels);
  if (work.phase == Phase::data_gradient) {  // its result has the pixels and the channels of the input
    const auto stride = static_cast<double>(std::max<std::int64_t>(1, work.stride));
    rows *= stride * stride;
    channels = static_cast<double>(work.in_channels);
  }
  return saturation(rows * tiles_across(channels, efficiency),
                    matmul ? efficiency.half_matmul_rows : efficiency.half_rows);
}

double phase_share(Phase phase, const Efficiency& efficiency) {
  if (phase == Phase::data_gradient) return efficiency.data_gradient;
  return phase == Phase::weight_gradient ? efficiency.weight_gradient : 1.0;
}

/// Whether libraries have channels-last kernels for tensor cores for groups of this many channels: up to 8,
/// and 16 and 32 if a multiple of 32 groups fills their tiles (from timm's figures: ResNeXts are fast,
/// RegNets with 16 channels and 40 to 168 groups are not).
bool has_channels_last_kernels(double width, std::int64_t groups) {
  return width <= 8 || ((width == 16 || width == 32) && groups % 32 == 0);
}

/// Share of what Winograd's algorithm computes that is outputs: it makes tiles of 2 x 2, and a tile that lies
/// over the edge of the image takes as long as a whole one (F(2x2, 3x3); Lavin and Gray, arXiv:1509.09308,
/// section 4.1).
double filled_winograd_tiles(const Work& work) {
  constexpr std::int64_t tile = 2;
  if (work.out_h <= 0 || work.out_w <= 0) return 1;
  const auto whole = [](std::int64_t length) { return (length + tile - 1) / tile * tile; };
  return static_cast<double>(work.out_h * work.out_w) /
         static_cast<double>(whole(work.out_h) * whole(work.out_w));
}

/// Share of peak of a grouped convolution, computed as one product per group or by depthwise kernels.
double grouped_share(const Work& work, double width, double product, const Efficiency& e, bool nhwc) {
  const double narrow = e.compute[static_cast<std::size_t>(KernelClass::convolution_grouped)];
  double direct = e.compute[static_cast<std::size_t>(KernelClass::convolution_depthwise)];
  if (e.half_group == 0)  // two classes of their own
    return work.kind == KernelKind::depthwise_convolution ? direct * phase_share(work.phase, e)
                                                          : product * narrow;
  product *= (width + narrow * e.half_group) / (width + e.half_group);
  if (nhwc && work.kind == KernelKind::convolution && !has_channels_last_kernels(width, work.groups))
    product = std::min(product, e.wide_groups_nhwc * phase_share(work.phase, e));
  if (work.phase == Phase::data_gradient) direct *= e.depthwise_data_gradient;
  if (work.phase == Phase::weight_gradient) direct *= e.depthwise_weight_gradient;
  return std::max(product, direct);
}

/// Whether windows of a volume overlap as those of a square convolution do that has a class of its own for
/// stride 1. On tensor cores, where neither has an algorithm that saves multiplications, they are alike: each
/// value is read once for many windows. Ordinary cores have such an algorithm for images alone.
bool overlaps_as_3x3(const Work& work, Precision precision) {
  return precision != Precision::fp32 && work.kernel_d > 1 && work.stride == 1 && work.groups <= 1 &&
         work.kernel_w < 5 && work.kernel_d == work.kernel_w &&
         work.kernel_h == work.kernel_d * work.kernel_w;
}

}  // namespace

KernelClass kernel_class(const Work& work) {
  switch (work.kind) {
    case KernelKind::convolution:
      if (work.groups > 1) return KernelClass::convolution_grouped;
      if (work.kernel_h == 1 && work.kernel_w == 1) return KernelClass::convolution_1x1;
      if (work.kernel_h == work.kernel_w && work.stride == 1)
        return work.kernel_h < 5 ? KernelClass::convolution_3x3 : KernelClass::convolution_5x5;
      return KernelClass::convolution_other;
    case KernelKind::depthwise_convolution:
      return KernelClass::convolution_depthwise;
    case KernelKind::matmul:
      return KernelClass::matmul;
    case KernelKind::normalization:
      return KernelClass::normalization;
    case KernelKind::elementwise:
      return KernelClass::elementwise;
    case KernelKind::pooling:
      return KernelClass::pooling;
    case KernelKind::softmax_loss:
      return KernelClass::softmax_loss;
    case KernelKind::update:
      return KernelClass::update;
    case KernelKind::custom:
      return KernelClass::custom;
  }
  return KernelClass::custom;
}

bool is_product(KernelClass kernel) { return kernel <= KernelClass::matmul; }

double largest_share(KernelClass kernel, Precision precision) {
  if (precision != Precision::fp32) return 1;
  if (kernel == KernelClass::convolution_3x3) return Efficiency::winograd_3x3_saving;
  return kernel == KernelClass::convolution_5x5 ? Efficiency::winograd_5x5_saving : 1;
}

double compute_efficiency(const Work& work, double images, Precision precision, const Efficiency& efficiency,
                          Layout layout, double rate) {
  const KernelClass kernel = kernel_class(work);
  double share = efficiency.compute[static_cast<std::size_t>(
      overlaps_as_3x3(work, precision) ? KernelClass::convolution_3x3 : kernel)];
  if (!is_product(kernel)) return share;
  const bool weights = work.phase == Phase::weight_gradient;
  const double groups = std::max<double>(1.0, static_cast<double>(work.groups));
  const double area = static_cast<double>(std::max<std::int64_t>(1, work.kernel_h * work.kernel_w));
  const double pixels = static_cast<double>(std::max<std::int64_t>(1, work.out_h * work.out_w));
  const double inputs = static_cast<double>(work.in_channels) / groups;
  const double outputs = static_cast<double>(work.out_channels) / groups;
  double shape = phase_share(work.phase, efficiency);
  // The product that computes the gradient of the input has the input's channels as columns, and sums over
  // those of the output.
  const bool swapped = work.phase == Phase::data_gradient;
  const double columns = swapped ? inputs : outputs, summed = swapped ? outputs : inputs;
  if (columns > 0)
    shape *= saturation(columns, weights ? efficiency.half_weight_outputs : efficiency.half_outputs);
  if (summed > 0)
    shape *=
        saturation(summed * area, weights ? efficiency.half_weight_reduction : efficiency.half_reduction);
  const double general = efficiency.compute[static_cast<std::size_t>(KernelClass::convolution_other)] * shape;
  if (kernel == KernelClass::convolution_grouped || kernel == KernelClass::convolution_depthwise) {
    share = grouped_share(work, std::min(inputs, outputs), efficiency.half_group > 0 ? general : shape,
                          efficiency, layout == Layout::nhwc && precision != Precision::fp32);
  } else if (kernel == KernelClass::convolution_3x3 && efficiency.half_winograd > 0 &&
             layout == Layout::nhwc) {
    share = general;  // cuDNN's kernels of Winograd's algorithm are for channels first
  } else if (kernel == KernelClass::convolution_3x3 && efficiency.half_winograd > 0) {
    const double half = efficiency.half_winograd;
    share = std::max(share * phase_share(work.phase, efficiency) * saturation(inputs, half) *
                         saturation(outputs, half) * filled_winograd_tiles(work),
                     general);
  } else {
    share *= shape;
  }
  if (work.phase == Phase::data_gradient && work.stride > 1) share *= efficiency.strided_data_gradient;
  if (!fits_tensor_cores(work, precision)) share *= efficiency.unaligned;
  share = share_at_rate(share, rate);
  // Only FLOPs that depend on images have rows; if fixed ones sped up with rows, more images could take less
  // time.
  const double of_images = work.flops_per_image * images;
  if (of_images > 0) {
    const double stretched = of_images / filled_share(work, kernel, images * pixels, efficiency);
    share *= (of_images + work.flops_fixed) / (stretched + work.flops_fixed);
  }
  return std::min(share, largest_share(kernel, precision));
}

}  // namespace convoy::costs
