// SPDX-License-Identifier: MIT
#include "sim/calibration/fit_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace convoy::inline calibration {
namespace {

constexpr double highest_share = Efficiency::max_share;  // Winograd's saving
constexpr double unbounded = std::numeric_limits<double>::infinity();

constexpr std::size_t at(KernelClass c) { return static_cast<std::size_t>(c); }

template <KernelClass c>
constexpr FitParameter compute(double cores, double tensor, double spread) {
  return {kernel_class_names[at(c)],
          cores,
          tensor,
          spread,
          true,
          false,
          true,
          highest_share,
          [](Efficiency& e, double v) { e.compute[at(c)] = v; },
          [](const Efficiency& e) { return e.compute[at(c)]; }};
}
template <KernelClass c>
constexpr FitParameter bandwidth(double typical, double spread, bool of_device) {
  return {kernel_class_names[at(c)],
          typical,
          typical,
          spread,
          of_device,
          false,
          true,
          1.0,
          [](Efficiency& e, double v) { e.bandwidth[at(c)] = v; },
          [](const Efficiency& e) { return e.bandwidth[at(c)]; }};
}
template <double Efficiency::*member>
constexpr FitParameter member_of(std::string_view key, double cores, double tensor, double spread,
                                 bool of_device = false, bool of_multiprocessor = false) {
  const double highest = key.starts_with("half")                         ? unbounded
                         : key == "transpose_passes"                     ? Efficiency::max_passes
                         : key == "filter_order" || key == "first_touch" ? 1.0
                                                                         : highest_share;
  return {key,
          cores,
          tensor,
          spread,
          of_device,
          of_multiprocessor,
          false,
          highest,
          [](Efficiency& e, double v) { e.*member = v; },
          [](const Efficiency& e) { return e.*member; }};
}
constexpr FitParameter streaming{"bandwidth",
                                 0.75,
                                 0.75,
                                 0.15,
                                 true,
                                 false,
                                 true,
                                 1.0,
                                 [](Efficiency& e, double v) {
                                   for (std::size_t c = 0; c <= at(KernelClass::matmul); ++c)
                                     e.bandwidth[c] = v;
                                 },
                                 [](const Efficiency& e) { return e.bandwidth[at(KernelClass::matmul)]; }};

// A core is full with one tile in its registers: 6 x 16 values of a product in BLIS' kernel for Haswell.
constexpr double rows_of_registers = 6;
// CPU libraries compute convolutions as products, without Winograd's algorithm or the Fourier transform.
constexpr double product_share_of_cpu = 0.65;

using enum KernelClass;
// Round numbers near what the devices with many rows give; the saturations near what DeepBench's kernels
// give.
constexpr std::array<FitParameter, 33> parameters{
    compute<convolution_1x1>(0.7, 0.5, 0.3),
    compute<convolution_3x3>(1.2, 0.55, 0.4),
    compute<convolution_5x5>(1.0, 0.5, 0.4),
    compute<convolution_other>(0.65, 0.4, 0.3),
    compute<convolution_grouped>(0.5, 0.35, 0.4),
    compute<convolution_depthwise>(0.15, 0.03, 0.5),
    compute<matmul>(0.75, 0.6, 0.3),
    streaming,
    bandwidth<normalization>(0.6, 0.25, true),
    bandwidth<elementwise>(0.8, 0.15, true),
    bandwidth<pooling>(0.6, 0.25, true),
    bandwidth<softmax_loss>(0.5, 0.25, false),
    bandwidth<update>(0.7, 0.15, false),
    member_of<&Efficiency::data_gradient>("data_gradient", 0.95, 0.95, 0.1, true),
    member_of<&Efficiency::weight_gradient>("weight_gradient", 0.85, 0.85, 0.1, true),
    member_of<&Efficiency::half_outputs>("half_outputs", 20, 40, 0.5),
    member_of<&Efficiency::half_reduction>("half_reduction", 30, 100, 0.5),
    member_of<&Efficiency::half_rows>("half_rows", 125, 90, 0.7, false, true),
    member_of<&Efficiency::half_weight_outputs>("half_weight_outputs", 40, 80, 0.5),
    member_of<&Efficiency::half_weight_reduction>("half_weight_reduction", 60, 200, 0.5),
    member_of<&Efficiency::half_weight_rows>("half_weight_rows", 6, 4, 0.7, false, true),
    member_of<&Efficiency::half_matmul_rows>("half_matmul_rows", 10, 20, 2.0, false, true),
    member_of<&Efficiency::strided_data_gradient>("strided_data_gradient", 0.5, 0.8, 0.3),
    member_of<&Efficiency::half_winograd>("half_winograd", 28, 0, 0.5),
    member_of<&Efficiency::unaligned>("unaligned", 0, 0.65, 0.4),
    member_of<&Efficiency::transpose_passes>("transpose_passes", 0, 1.4, 0.6),
    member_of<&Efficiency::depthwise_data_gradient>("depthwise_data_gradient", 0.9, 0.9, 0.3),
    member_of<&Efficiency::depthwise_weight_gradient>("depthwise_weight_gradient", 0.5, 0.5, 0.4),
    member_of<&Efficiency::half_group>("half_group", 24, 24, 0.5),
    member_of<&Efficiency::wide_groups_nhwc>("wide_groups_nhwc", 0, 0.06, 0.5),
    member_of<&Efficiency::filter_order>("filter_order", 0.15, 0.15, 0.5),
    member_of<&Efficiency::first_touch>("first_touch", 0, 0, 0.7),
    member_of<&Efficiency::pooling_windows>("pooling_windows", 0, 0, 0.5),
};

/// Of CPUs, where they differ from those of GPUs' cores. What PyTorch's plain tensors cost there is near what
/// tests/calibration/traces shows on a core of Zen 3: filters are reordered at 6 of 20 GB/s, 4 KiB of new
/// memory take some 3 us (a page fault in a virtual machine; less on the machine itself), and 11 cycles of 32
/// FLOPs pass for each value of a window. One pass of an input or output reads it, another writes it.
struct TypicalOfCpu {
  std::string_view key;
  double value;
};
constexpr std::array typical_of_cpu{
    TypicalOfCpu{"half_winograd", 0},  // GPU libraries' algorithm
    TypicalOfCpu{"half_rows", rows_of_registers},
    TypicalOfCpu{"half_matmul_rows", rows_of_registers},
    TypicalOfCpu{"convolution_3x3", product_share_of_cpu},
    TypicalOfCpu{"convolution_5x5", product_share_of_cpu},
    TypicalOfCpu{"transpose_passes", 2},
    TypicalOfCpu{"filter_order", 0.3},
    TypicalOfCpu{"first_touch", 0.07},
    TypicalOfCpu{"pooling_windows", 0.003},
};

/// Ampere's and Ada's chips for graphics compute FP32 on two pipes, of which one computes integers too: 128
/// multiply-adds a multiprocessor and clock, where their chips for computing have 64. The peak counts
/// both; Winograd's transforms and addresses keep the second one busy with the latter.
bool has_shared_pipe(const DeviceType& device) {
  if (device.kind->in_process || (device.generation != "ampere" && device.generation != "ada")) return false;
  const auto peak = device.peak_flops.find(Precision::fp32);
  if (peak == device.peak_flops.end() || device.clock_hz <= 0 || device.sms <= 0) return false;
  constexpr double more_than_one_pipe = 96;
  return peak->second / (2 * device.clock_hz * device.sms) > more_than_one_pipe;
}

std::string section(const Efficiency& e, ComputePath path, const DeviceType& device, const Efficiency* base,
                    std::string_view indent) {
  std::string text;
  for (const FitParameter& p : parameters) {
    const bool here = typical_value(p, path, device) > 0;
    if (!here && !(base && typical_value(p, ComputePath::cores, device) > 0)) continue;
    const std::string value = fmt::format("{:.3g}", p.get(e));
    if (base && value == fmt::format("{:.3g}", p.get(*base))) continue;
    text += fmt::format("{}{}: {}\n", indent, p.key, value);
  }
  return text;
}

}  // namespace

std::span<const FitParameter> fit_parameters() { return parameters; }

ComputePath compute_path(const DeviceType& device, Precision precision) {
  const bool is_unknown = !device.kind->in_process && device.generation.empty();
  if (precision == Precision::fp32 || !(device.has_tensor_cores() || is_unknown)) return ComputePath::cores;
  return precision == Precision::tf32 ? ComputePath::tensor_tf32 : ComputePath::tensor_fp16;
}

double typical_value(const FitParameter& parameter, ComputePath path, const DeviceType& device) {
  if (device.kind->in_process)
    for (const TypicalOfCpu& of_cpu : typical_of_cpu)
      if (parameter.key == of_cpu.key) return of_cpu.value;
  return path == ComputePath::cores ? parameter.cores : parameter.tensor;
}

double times_on_device(const FitParameter& parameter, ComputePath path, const DeviceType& device) {
  constexpr double typical_multiprocessors = 32, one_of_two = 0.5;
  if (parameter.of_multiprocessor) return device.sms > 0 ? device.sms : typical_multiprocessors;
  const bool winograd = path == ComputePath::cores && parameter.key == "convolution_3x3";
  return winograd && has_shared_pipe(device) ? one_of_two : 1;
}

void put_parameter(const FitParameter& parameter, double value, ComputePath path, const DeviceType& device,
                   Efficiency& efficiency) {
  value *= times_on_device(parameter, path, device);
  const double highest =
      device.kind->in_process && parameter.highest == highest_share ? 1.0 : parameter.highest;
  parameter.set(efficiency, std::min(value, highest));
}

double within_bounds(const FitParameter& parameter, double value) {
  return parameter.of_class ? value : std::clamp(value, Efficiency::min_share, parameter.highest);
}

std::string fit_family(const DeviceType& device) {
  return device.kind->in_process ? std::string(device.kind->name) : device.generation;
}

std::string chip_of(const DeviceType& device) {
  struct Chip {
    std::string_view name;
    std::span<const std::string_view> prefixes;
  };
  static constexpr std::array<std::string_view, 2> gv100{"v100", "titan-v"};
  static constexpr std::array<std::string_view, 2> ga100{"a100", "a30"};
  static constexpr std::array<std::string_view, 5> tu102{"rtx-2080-ti", "titan-rtx", "quadro-rtx-6000",
                                                         "quadro-rtx-8000", "tu102"};
  static constexpr std::array<std::string_view, 6> ga102{"rtx-3090",  "rtx-3080", "rtx-a5000",
                                                         "rtx-a6000", "a10",      "a40"};
  static constexpr std::array<std::string_view, 2> ga104{"rtx-3070", "rtx-a4000"};
  static constexpr std::array<std::string_view, 1> gp100{"p100"};
  static constexpr std::array<std::string_view, 4> gp102{"titan-x-pascal", "titan-xp", "gtx-1080-ti", "p40"};
  static constexpr std::array<std::string_view, 2> gm200{"titan-x-maxwell", "m40"};
  static constexpr std::array<std::string_view, 3> gh100{"h100", "h200", "gh200"};
  static constexpr std::array<std::string_view, 3> ad102{"l40", "rtx-4090", "rtx-6000-ada"};
  static constexpr std::array chips{Chip{"ga100", ga100}, Chip{"gv100", gv100}, Chip{"tu102", tu102},
                                    Chip{"ga102", ga102}, Chip{"ga104", ga104}, Chip{"gp100", gp100},
                                    Chip{"gp102", gp102}, Chip{"gm200", gm200}, Chip{"gh100", gh100},
                                    Chip{"ad102", ad102}};
  for (const Chip& chip : chips)
    for (const std::string_view prefix : chip.prefixes)
      if (device.name.starts_with(prefix)) return std::string(chip.name);
  return device.name;
}

std::string catalogue_yaml(const DeviceType& device) {
  const Efficiency& base = device.efficiency[static_cast<std::size_t>(Precision::fp32)];
  // A fit finds the logarithm, and comes near to none without reaching it.
  constexpr double least_s = 1e-12;
  const double launch_us = device.launch_overhead_s < least_s ? 0 : device.launch_overhead_s * 1e6;
  std::string text = fmt::format("launch_overhead: {:.3g}us\n", launch_us);
  if (device.issue_factor > 0) text += fmt::format("issue_factor: {:.3g}\n", device.issue_factor);
  text +=
      fmt::format("evidence: {{rows: {}, spread: {:.3g}{}}}\n", device.evidence_rows, device.evidence_spread,
                  device.evidence_left_out_error > 0
                      ? fmt::format(", left_out_error: {:.3g}%", 100 * device.evidence_left_out_error)
                      : "");
  text += fmt::format("efficiency:\n  default: {:.3g}\n", base.bandwidth[at(elementwise)]);
  text += section(base, ComputePath::cores, device, nullptr, "  ");
  for (const Precision p : {Precision::tf32, Precision::fp16, Precision::bf16}) {
    if (!device.runs(p)) continue;
    const std::string different = section(device.efficiency[static_cast<std::size_t>(p)],
                                          compute_path(device, p), device, &base, "    ");
    if (!different.empty()) text += fmt::format("  {}:\n{}", to_string(p), different);
  }
  return text;
}

}  // namespace convoy::calibration
