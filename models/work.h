// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/precision.h"

namespace convoy::inline models {

/// The four parts of a training step that an operation can belong to.
enum class Phase : std::uint8_t { forward, data_gradient, weight_gradient, update };

/// What kind of kernel runs: the cost model's efficiencies are by kind (and, for convolutions, by geometry).
enum class KernelKind : std::uint8_t {
  convolution,            ///< dense or grouped convolution, and transposed convolution
  depthwise_convolution,  ///< one input channel a group
  matmul,                 ///< linear layers, attention-like products
  normalization,          ///< batch, layer, group and local response normalisation
  elementwise,            ///< activations, additions, dropout, scaling, concatenation and other copies
  pooling,
  softmax_loss,
  update,  ///< the optimizer's step
  custom,  ///< given by its costs (layer kind `custom`): efficiency of the device's `custom` entry, 1 where
           ///< none
};
std::string_view to_string(Phase phase);
std::string_view to_string(KernelKind kind);

/// With what a kernel can be one kernel.
enum class Fusion : std::uint8_t {
  none,          ///< with nothing: products, copies into and out of buckets, what is timed alone
  chain,         ///< with the operations of the network around it, by a compiler
  normalization  ///< also with the batch normalization before it: the sum and the activation that follow it
};

enum class Optimizer : std::uint8_t { sgd, momentum, adam };
inline constexpr std::array<std::string_view, 3> optimizer_names{"sgd", "momentum", "adam"};

/// What one operation asks of a device, as a function of the number of images b it is run on:
///   FLOPs(b) = flops_per_image b + flops_fixed,   bytes(b) = bytes_per_image b + bytes_fixed
/// with one multiply-add = 2 FLOPs and bytes = memory traffic of a kernel that reads every input once and
/// writes every output once. The geometry is there for the cost model's efficiency; it is 0 where it has no
/// meaning.
struct Work {
  KernelKind kind = KernelKind::custom;
  Phase phase = Phase::forward;
  Fusion fusion = Fusion::none;
  /// Launch overheads of the device, and operations that the host issues: of an update those of its kernels
  /// (the host issues one), of attention in several kernels so many, of anything else one. Counts where the
  /// framework's software does (DeviceType::issue_factor).
  float launches = 1;
  double flops_per_image = 0;
  double flops_fixed = 0;
  double bytes_per_image = 0;
  double bytes_fixed = 0;
  /// Traffic of elementwise kernels around a product that are part of the operation: copies, casts, a
  /// softmax, a sum of gradients of shared parameters. They take their time beside the product's.
  double aside_bytes_per_image = 0;
  double aside_bytes_fixed = 0;
  /// Bytes of a convolution's filter that the framework reads and writes to put it in the order that the
  /// kernel wants, or its gradient in the framework's own. Counts as `launches`.
  double reordered_bytes = 0;
  double seconds_per_image = 0;  ///< measured time; where there is one, nothing above counts
  /// Whose forward, data gradient or weight gradient it is (index into Model::layers), for measured times.
  std::uint32_t layer = no_layer;
  static constexpr std::uint32_t no_layer = 0xffffffff;
  /// Bytes that the framework's kernels move over those above: more than 1 of updates in several kernels
  /// (optimizer_update.h). Counts as `launches`.
  float traffic = 1;
  std::int64_t in_channels = 0, out_channels = 0;  ///< of a convolution or linear layer (features)
  std::int64_t kernel_h = 0, kernel_w = 0, stride = 0, groups = 0;
  std::int64_t kernel_d = 0;  ///< of volumes: planes of the window, whose rows kernel_h counts together
  std::int64_t out_h = 0, out_w = 0;
  bool is_whole_mean = false;  ///< pooling of all values of a channel to their mean
  /// FLOPs of its peak that a CPU, which has no instruction for exponentials, could do in the time of one of this
  /// kernel's; 0: it is bound by memory there.
  float peak_flops_a_flop = 0;
  bool operator==(const Work&) const = default;
};

}  // namespace convoy::models
