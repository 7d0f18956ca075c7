// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/precision.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline topologies {

/// Kernels that reach a like share of a device's peak. Convolutions by geometry, because libraries have an
/// algorithm for each: 1x1 is a matrix product; 3x3 with stride 1 has Winograd's and square ones from 5x5
/// with stride 1 have Winograd's and the Fourier transform, all with fewer multiplications than counted, so
/// that their share may exceed 1; the others (strides, 1x7) have the general algorithm.
enum class KernelClass : std::uint8_t {
  convolution_1x1,
  convolution_3x3,
  convolution_5x5,
  convolution_other,
  convolution_grouped,
  convolution_depthwise,
  matmul,
  normalization,
  elementwise,
  pooling,
  softmax_loss,
  update,
  custom,
};
inline constexpr std::size_t kernel_class_count = 13;
inline constexpr std::array<std::string_view, kernel_class_count> kernel_class_names{
    "convolution_1x1",       "convolution_3x3", "convolution_5x5", "convolution_other", "convolution_grouped",
    "convolution_depthwise", "matmul",          "normalization",   "elementwise",       "pooling",
    "softmax_loss",          "update",          "custom"};

/// What share of a device's peak and bandwidth kernels reach. The neutral value (all 1, halves 0) is the
/// roofline. For a product of M x K by K x N (a convolution is one, see cost_model.h) the share of peak is
///   compute[class] (data_gradient or weight_gradient) N/(N + half_outputs) K/(K + half_reduction) R/(R +
///   half_rows), R being M times the tiles across N,
/// with halves of its own for the weight gradient, which sums over M, and three rules of the libraries
/// (docs/cost_model.md): strided data gradients, Winograd's algorithm, channels for tensor cores.
struct Efficiency {
  std::array<double, kernel_class_count> compute;  ///< share of peak of a large forward kernel; may exceed 1
  std::array<double, kernel_class_count> bandwidth;  ///< share of bandwidth
  double data_gradient = 1, weight_gradient = 1;     ///< factors on the share of peak of these passes
  double half_outputs = 0;                           ///< output channels at which half the peak is reached
  double half_reduction = 0;  ///< length of the dot products at which half the peak is reached
  double half_rows = 0;  ///< R at which half the peak is reached: pixels of all images x tiles of 64 channels
  double half_weight_outputs = 0, half_weight_reduction = 0, half_weight_rows = 0;  ///< of weight gradients
  double half_matmul_rows = 0;       ///< as half_rows, in every phase, of linear layers and other plain products
  double strided_data_gradient = 1;  ///< factor on the share of data gradients of strided convolutions
  /// Where above 0, 3x3 convolutions with stride 1 run on the faster of two algorithms: Winograd's, with the
  /// share of convolution_3x3 times C/(C + half_winograd) for input and for output channels, and the general
  /// one, with the share of convolution_other. 0: convolution_3x3 is the share, whatever the algorithm.
  double half_winograd = 0;
  double unaligned = 1;  ///< factor on the share of products whose channels do not fit the tensor cores
  /// Grouped convolutions run as a product a group, with convolution_other's share times
  /// (w + convolution_grouped half_group) / (w + half_group) for groups of w channels (from
  /// convolution_grouped for few to 1 for many; convolution_grouped where half_group is 0), or with depthwise
  /// kernels, with the share of convolution_depthwise, whichever is faster.
  double half_group = 0;
  double depthwise_data_gradient = 1,
         depthwise_weight_gradient = 1;  ///< factors on the depthwise kernels' share
  double wide_groups_nhwc =
      1;  ///< share of peak of groups that have no channels-last kernels on tensor cores (sim/costs)
  /// Passes over its input and output that a convolution on tensor cores makes where channels are not last,
  /// in elementwise kernels of its own; 2 would be one before and one after each. Likewise on a CPU
  /// (SoftwareCosts::plain_tensors).
  double transpose_passes = 0;
  /// Share of bandwidth at which convolutions' filters are put in another order (Work::reordered_bytes; on a
  /// CPU SoftwareCosts::plain_tensors): they are read with strides.
  double filter_order = 1;
  // Of CPUs.
  double first_touch = 1;  ///< share of bandwidth at which memory that was just allocated is first written
  /// Share of peak at which a loop compares the values of pooling's windows one by one.
  double pooling_windows = 1;
  /// Allowed shares. Above: Winograd's F(4x4, 3x3) saves a factor of 4 (Lavin and Gray, arXiv:1509.09308,
  /// section 4).
  static constexpr double min_share = 1e-6, max_share = 4.0;
  static constexpr double max_passes = 10;  ///< of transpose_passes
  /// Saving in multiplications of the fastest algorithm of a class: no kernel runs beyond peak times that.
  /// 3x3: F(4x4, 3x3), 4; 5x5: F(2x2, 5x5), 100/36. Ordinary cores alone: tensor cores have no such kernels.
  static constexpr double winograd_3x3_saving = 4.0, winograd_5x5_saving = 100.0 / 36;
  explicit Efficiency(double everywhere = 1.0);
  bool operator==(const Efficiency&) const = default;
};

/// The `efficiency` of a device's mapping, by Precision (read_device has the keys). @throws InputError
std::array<Efficiency, 4> read_efficiency(YamlMap& device);

}  // namespace convoy::topologies
