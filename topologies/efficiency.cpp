// SPDX-License-Identifier: MIT
#include "topologies/efficiency.h"

#include <fmt/format.h>

namespace convoy {
namespace {

constexpr double min_share = Efficiency::min_share;
constexpr double max_share = Efficiency::max_share;

constexpr std::size_t index(KernelClass c) { return static_cast<std::size_t>(c); }
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
  e.data_gradient = share(map, "data_gradient", e.data_gradient);
  e.weight_gradient = share(map, "weight_gradient", e.weight_gradient);
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
  e.half_group = map.number_or("half_group", e.half_group, 0);
  e.depthwise_data_gradient = share(map, "depthwise_data_gradient", e.depthwise_data_gradient);
  e.depthwise_weight_gradient = share(map, "depthwise_weight_gradient", e.depthwise_weight_gradient);
  e.wide_groups_nhwc = share(map, "wide_groups_nhwc", e.wide_groups_nhwc);
  e.transpose_passes = map.number_or("transpose_passes", e.transpose_passes, 0, 10);
}

}  // namespace

Efficiency::Efficiency(double everywhere) {
  compute.fill(everywhere);
  bandwidth.fill(everywhere);
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

}  // namespace convoy
