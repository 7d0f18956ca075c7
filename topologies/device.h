// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/precision.h"
#include "sim/base/yaml_map.h"
#include "topologies/device_kind.h"
#include "topologies/efficiency.h"
#include "topologies/sources.h"

namespace convoy::inline topologies {

/// A kind of device: a GPU, a CPU used for computing, a mobile GPU. From topologies/catalog/devices/NAME.yaml
/// or inline.
struct DeviceType {
  std::string name;
  std::string title;  ///< "NVIDIA Tesla K80 (one of a board's two GPUs)"; "" inline
  const DeviceKind* kind = &device_kinds.front();  ///< a row of device_kinds
  std::map<Precision, double> peak_flops;  ///< FLOP/s by precision; a precision that is absent cannot be run
  double memory_bytes = 0;
  double memory_bandwidth_Bps = 0;
  double launch_overhead_s = 0;     ///< per operation with work, before its kernel runs
  double reserved_bytes = 0;        ///< what a process has reserved of the memory before it allocates
  bool framework_reserves = false;  ///< a GPU of the catalogue without `reserved`: it is the framework's
  /// Idle: a process holds the device and no kernel runs. Peak: what its board may draw (TDP).
  double idle_power_w = 0, peak_power_w = 0;
  /// What the driver offers to processes of memory_bytes (nvidia-smi's total: ECC and its own part taken
  /// off).
  double usable_memory_bytes = 0;
  std::string generation;    ///< one of generation_names(); "" where it is not told
  int sms = 0;               ///< streaming multiprocessors; a CPU's cores; 0 where not told
  double clock_hz = 0;       ///< at which the fp32 peak is stated (boost); 0 where not told
  double l2_bytes = 0;       ///< last-level cache; 0 where not told
  bool peer_to_peer = true;  ///< over PCIe, without the host's memory; GeForce cards from Turing on cannot
  std::array<Efficiency, 4> efficiency;  ///< by Precision
  /// Where above 0, the device is a GPU whose kernels a host issues (sim/costs/software.h): time a kernel's
  /// issue takes, relative to the framework's on a typical host; build_machine() puts the host's own
  /// HostType::issue_factor on it. 0: issuing costs nothing.
  double issue_factor = 0;
  /// What the efficiencies rest on: published rows of this device itself, and the standard deviation of
  /// log(time) that the fit leaves; 0 where they are exact.
  int evidence_rows = 0;
  double evidence_spread = 0;
  /// Where the rows are networks of its owner's own (`convoy calibrate`): mean error of each, left out of the
  /// fit in turn; 0 where nobody left one out.
  double evidence_left_out_error = 0;
  Sources sources;  ///< of its numbers

  bool operator==(const DeviceType&) const = default;

  /// The roofline itself, whatever runs on it: what is said of it holds exactly.
  bool is_exact() const;
  bool runs(Precision precision) const { return peak_flops.contains(precision); }
  /// A generation whose matrix units compute tf32, fp16 and bf16 beside the cores that compute fp32.
  bool has_tensor_cores() const;
};

/// A device from its YAML mapping (an entry of `devices:` inline, or a catalogue file).
///   peak: {fp32: 10TFLOPS, …}, memory, memory_bandwidth     required
///   efficiency: below; without it, that of the nearest device of the catalogue (typical_efficiency.h)
///   launch_overhead (0), idle_power (0), peak_power (idle_power), reserved (0), title, kind: gpu (or cpu),
///   peer_to_peer (true), usable_memory (memory), generation, sms, clock, l2 (facts of the chip),
///   sources: {key: text}, issue_factor (0), evidence: {rows, spread, left_out_error}: what a fit writes
///   beside its efficiencies.
/// efficiency: one number (the same share of peak and of bandwidth for everything, 1.0 = roofline), or a
/// mapping:
///   default: share of kinds that are not named (required); a KernelClass name: share of peak for
///   convolutions and matmul, share of bandwidth for the others, both for `custom` (1 where absent);
///   bandwidth: share of bandwidth for the bytes of convolutions and matmul (default where absent);
///   data_gradient, weight_gradient, strided_data_gradient, unaligned: factors on the share of peak (1);
///   half_outputs, half_reduction, half_rows (0); half_weight_outputs, half_weight_reduction,
///   half_weight_rows (where absent, the three before); half_matmul_rows (where absent, half_rows);
///   half_winograd (0); half_group (0), depthwise_data_gradient, depthwise_weight_gradient, wide_groups_nhwc
///   (1), transpose_passes (0), filter_order, first_touch, pooling_windows (1); fp16, bf16, tf32: a mapping
///   with what differs.
/// @throws InputError for anything else.
DeviceType read_device(const YamlNode& node, const std::string& name);

/// Standard deviation of log(time) that is left where nobody measured a device, and its efficiencies are
/// those of others like it (topologies/catalog/software/devices.yaml). @throws InputError: a wrong file
double left_out_device_spread();

/// A catalogue device. @throws InputError at `pos` for an unknown name, with a suggestion.
DeviceType load_device(const std::string& name, const SourcePos& pos);

/// What `generation` may be: of NVIDIA's GPUs in order of appearance, of mobile GPUs, of CPUs.
const std::vector<std::string>& generation_names();

/// Names of the catalogue's devices, sorted.
std::vector<std::string> device_names();

}  // namespace convoy::topologies
