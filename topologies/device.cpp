// SPDX-License-Identifier: MIT
#include "topologies/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/data_path.h"
#include "sim/base/names.h"

namespace convoy {
namespace {

const std::string folder = "topologies/catalog/devices";
constexpr double min_share = Efficiency::min_share;
constexpr double max_share = Efficiency::max_share;

constexpr std::size_t index(KernelClass c) { return static_cast<std::size_t>(c); }
constexpr std::size_t index(Phase p) { return static_cast<std::size_t>(p); }
constexpr bool computes(std::size_t c) { return c <= index(KernelClass::matmul); }

double share(YamlMap& map, std::string_view key, double fallback) {
  return map.number_or(key, fallback, min_share, max_share);
}

// Keys shared by the whole mapping and by a precision's part of it: what is not named stays as it is in `e`.
void read_shares(YamlMap& map, Efficiency& e) {
  for (std::size_t c = 0; c < index(KernelClass::custom); ++c) {
    double& value = computes(c) ? e.compute[c] : e.bandwidth[c];
    value = share(map, kernel_class_names[c], value);
  }
  const double streaming = share(map, "bandwidth", e.bandwidth[index(KernelClass::matmul)]);
  for (std::size_t c = 0; computes(c); ++c) e.bandwidth[c] = streaming;
  double& custom = e.compute[index(KernelClass::custom)];
  custom = e.bandwidth[index(KernelClass::custom)] = share(map, "custom", custom);
  e.phase[index(Phase::data_gradient)] = share(map, "data_gradient", e.phase[index(Phase::data_gradient)]);
  e.phase[index(Phase::weight_gradient)] =
      share(map, "weight_gradient", e.phase[index(Phase::weight_gradient)]);
  // The weight gradient's halves follow the others' until they are given themselves.
  const auto half = [&](std::string_view key, std::string_view weight_key, double& value, double& weight) {
    const bool alike = weight == value;
    value = map.number_or(key, value, 0);
    weight = map.number_or(weight_key, alike ? value : weight, 0);
  };
  half("half_outputs", "half_weight_outputs", e.half_outputs, e.half_weight_outputs);
  half("half_reduction", "half_weight_reduction", e.half_reduction, e.half_weight_reduction);
  const bool alike = e.half_matmul_rows == e.half_rows;
  half("half_rows", "half_weight_rows", e.half_rows, e.half_weight_rows);
  e.half_matmul_rows = map.number_or("half_matmul_rows", alike ? e.half_rows : e.half_matmul_rows, 0);
  e.strided_data_gradient = share(map, "strided_data_gradient", e.strided_data_gradient);
  e.half_winograd = map.number_or("half_winograd", e.half_winograd, 0);
  e.unaligned = share(map, "unaligned", e.unaligned);
}

std::array<Efficiency, 4> read_efficiency(YamlMap& device) {
  std::array<Efficiency, 4> result;
  const YamlNode& node = device.node("efficiency");
  if (node.kind == YamlNode::Kind::scalar) {
    result.fill(Efficiency(device.number("efficiency", min_share, max_share)));
    return result;
  }
  if (node.kind != YamlNode::Kind::mapping)
    device.fail("efficiency", fmt::format("expected a number such as 0.7 or a mapping of shares, found {}",
                                          describe(node)));
  YamlMap map = device.map("efficiency");
  Efficiency common;
  const double fallback = map.number("default", min_share, max_share);
  for (std::size_t c = 0; c < index(KernelClass::custom); ++c) {
    if (computes(c)) common.compute[c] = fallback;
    common.bandwidth[c] = fallback;
  }
  read_shares(map, common);
  result.fill(common);
  for (const Precision p : {Precision::tf32, Precision::fp16, Precision::bf16}) {
    const YamlNode* different = map.find(to_string(p));
    if (!different) continue;
    YamlMap part(*different, map.path_of(to_string(p)));
    read_shares(part, result[static_cast<std::size_t>(p)]);
    part.finish();
  }
  map.finish();
  return result;
}

std::map<Precision, double> read_peaks(YamlMap& device) {
  YamlMap map = device.map("peak");
  std::map<Precision, double> peaks;
  for (const Precision p : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    if (const YamlNode* peak = map.find(to_string(p)))
      peaks[p] = read_quantity(*peak, map.path_of(to_string(p)), Dimension::flop_rate, true);
  map.finish();
  if (peaks.empty()) device.fail("peak", "give the peak of at least one precision: fp32, tf32, fp16 or bf16");
  return peaks;
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

Efficiency::Efficiency(double everywhere) {
  compute.fill(everywhere);
  bandwidth.fill(everywhere);
  phase.fill(1.0);
}

DeviceType read_device(const YamlNode& node, const std::string& name) {
  YamlMap map(node, "devices." + name);
  DeviceType device;
  device.name = name;
  device.title = map.text_or("title", "");
  device.cpu = map.choice_or("kind", {"gpu", "cpu"}, 0) == 1;
  device.peak_flops = read_peaks(map);
  device.memory_bytes = map.quantity("memory", Dimension::bytes, true);
  device.memory_bandwidth_Bps = map.quantity("memory_bandwidth", Dimension::bandwidth, true);
  device.efficiency = read_efficiency(map);
  device.launch_overhead_s = map.quantity_or("launch_overhead", Dimension::time, 0);
  device.reserved_bytes = map.quantity_or("reserved", Dimension::bytes, 0);
  if (device.reserved_bytes >= device.memory_bytes)
    map.fail("reserved", "must be less than the device's memory");
  device.idle_power_w = map.quantity_or("idle_power", Dimension::power, 0);
  device.peak_power_w = map.quantity_or("peak_power", Dimension::power, device.idle_power_w);
  if (device.peak_power_w < device.idle_power_w) map.fail("peak_power", "must be at least idle_power");
  if (const YamlNode* texts = map.find("sources")) {
    YamlMap sources(*texts, map.path_of("sources"));
    for (const std::string& key : sources.keys()) device.sources.emplace_back(key, sources.text(key));
  }
  map.finish();
  return device;
}

DeviceType load_device(const std::string& name, const SourcePos& pos) {
  const std::vector<std::string> known = device_names();
  if (!std::binary_search(known.begin(), known.end(), name))
    throw InputError(pos, fmt::format("unknown device '{}'{}; the catalogue has {}", name,
                                      suggestion(name, known), list_of(known, known.size())));
  const YamlNode file = load_yaml(fmt::format("{}/{}.yaml", data_path(folder), name));
  DeviceType device = read_device(file, name);
  device.framework_reserves = !file.find("reserved");
  return device;
}

std::vector<std::string> device_names() { return data_names(folder); }

}  // namespace convoy
