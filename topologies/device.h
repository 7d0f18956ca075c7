// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/work.h"
#include "sim/base/yaml_map.h"

namespace convoy {

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
KernelClass kernel_class(const Work& work);

/// What share of a device's peak and bandwidth kernels reach. The neutral value (all 1, halves 0) is the
/// roofline. For a product of M x K by K x N (a convolution is one, see cost_model.h) the share of peak is
///   compute[class] phase[phase] N/(N + half_outputs) K/(K + half_reduction) M/(M + half_rows)
/// with halves of its own for the weight gradient, which sums over M, and three rules of the libraries
/// (docs/cost_model.md): strided data gradients, Winograd's algorithm, channels for tensor cores.
struct Efficiency {
  std::array<double, kernel_class_count> compute;  ///< share of peak of a large forward kernel; may exceed 1
  std::array<double, kernel_class_count> bandwidth;  ///< share of bandwidth
  std::array<double, 4> phase;                       ///< by Phase, relative to forward
  double half_outputs = 0;                           ///< output channels at which half the peak is reached
  double half_reduction = 0;  ///< length of the dot products at which half the peak is reached
  double half_rows = 0;       ///< output pixels of all images at which half the peak is reached
  double half_weight_outputs = 0, half_weight_reduction = 0, half_weight_rows = 0;  ///< of weight gradients
  double half_matmul_rows = 0;       ///< rows, in every phase, of linear layers and other plain products
  double strided_data_gradient = 1;  ///< factor on the share of data gradients of strided convolutions
  /// Where above 0, 3x3 convolutions with stride 1 run on the faster of two algorithms: Winograd's, with the
  /// share of convolution_3x3 times C/(C + half_winograd) for input and for output channels, and the general
  /// one, with the share of convolution_other. 0: convolution_3x3 is the share, whatever the algorithm.
  double half_winograd = 0;
  double unaligned = 1;  ///< factor on the share of products whose channels do not fit the tensor cores
  /// Allowed shares. Above: Winograd's F(4x4, 3x3) saves a factor of 4 (Lavin and Gray, arXiv:1509.09308,
  /// section 4).
  static constexpr double min_share = 1e-6, max_share = 4.0;
  explicit Efficiency(double everywhere = 1.0);
  bool operator==(const Efficiency&) const = default;
};

/// A kind of device: a GPU, a CPU used for computing, a mobile GPU. From topologies/catalog/devices/NAME.yaml
/// or inline.
struct DeviceType {
  std::string name;
  std::string title;  ///< "NVIDIA Tesla K80 (one of a board's two GPUs)"; "" inline
  bool cpu = false;   ///< `kind: cpu`: a calibration does not expect the algorithms of GPU libraries of it
  std::map<Precision, double> peak_flops;  ///< FLOP/s by precision; a precision that is absent cannot be run
  double memory_bytes = 0;
  double memory_bandwidth_Bps = 0;
  double launch_overhead_s = 0;     ///< per operation with work, before its kernel runs
  double reserved_bytes = 0;        ///< what a process has reserved of the memory before it allocates
  bool framework_reserves = false;  ///< a GPU of the catalogue without `reserved`: it is the framework's
  double idle_power_w = 0, peak_power_w = 0;
  std::array<Efficiency, 4> efficiency;  ///< by Precision
  std::vector<std::pair<std::string, std::string>>
      sources;  ///< what a number is about (dotted key) -> where it is from

  bool runs(Precision precision) const { return peak_flops.contains(precision); }
};

/// A device from its YAML mapping (an entry of `devices:` inline, or a catalogue file).
///   peak: {fp32: 10TFLOPS, …}, memory, memory_bandwidth, efficiency     required
///   launch_overhead (0), idle_power (0), peak_power (idle_power), reserved (0), title, kind: gpu (or cpu),
///   sources: {key: text}
/// efficiency: one number (the same share of peak and of bandwidth for everything, 1.0 = roofline), or a
/// mapping:
///   default: share of kinds that are not named (required); a KernelClass name: share of peak for
///   convolutions and matmul, share of bandwidth for the others, both for `custom` (1 where absent);
///   bandwidth: share of bandwidth for the bytes of convolutions and matmul (default where absent);
///   data_gradient, weight_gradient, strided_data_gradient, unaligned: factors on the share of peak (1);
///   half_outputs, half_reduction, half_rows (0); half_weight_outputs, half_weight_reduction,
///   half_weight_rows (where absent, the three before); half_matmul_rows (where absent, half_rows);
///   half_winograd (0); fp16, bf16, tf32: a mapping with what differs.
/// @throws InputError for anything else.
DeviceType read_device(const YamlNode& node, const std::string& name);

/// A catalogue device. @throws InputError at `pos` for an unknown name, with a suggestion.
DeviceType load_device(const std::string& name, const SourcePos& pos);

/// Names of the catalogue's devices, sorted.
std::vector<std::string> device_names();

}  // namespace convoy
