// SPDX-License-Identifier: MIT
#include "sim/costs/residuals.h"

#include <array>
#include <string>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"

namespace convoy {
namespace {

constexpr std::array<std::string_view, residual_kind_count> names{
    "plain_fp32_short",   "plain_fp32_long",   "plain_tf32_short",   "plain_tf32_long",
    "plain_fp16_short",   "plain_fp16_long",   "grouped_fp32_short", "grouped_fp32_long",
    "grouped_tf32_short", "grouped_tf32_long", "grouped_fp16_short", "grouped_fp16_long"};

bool is_grouped(const Work& work) {
  return work.kind == KernelKind::depthwise_convolution ||
         (work.kind == KernelKind::convolution && work.groups > 2);
}

std::array<double, residual_kind_count> read_spreads() {
  const YamlNode file = load_yaml(data_path("topologies/catalog/software") + "/residuals.yaml");
  YamlMap map(file, "");
  std::array<double, residual_kind_count> spreads{};
  for (std::size_t k = 0; k < spreads.size(); ++k) spreads[k] = map.number(std::string(names[k]), 0, 10);
  map.finish();
  return spreads;
}

}  // namespace

std::string_view residual_kind_name(std::size_t kind) { return names.at(kind); }

std::size_t residual_kind(const std::vector<Work>& works, double images, Precision precision) {
  constexpr double few_images = 16;
  bool grouped = false;
  for (const Work& work : works) grouped = grouped || is_grouped(work);
  const std::size_t unit = precision == Precision::fp32 ? 0 : precision == Precision::tf32 ? 1 : 2;
  return (grouped ? 6U : 0U) + 2 * unit + (images > few_images ? 1U : 0U);
}

double residual_spread(std::size_t kind) {
  static const std::array<double, residual_kind_count> spreads = read_spreads();
  return spreads.at(kind);
}

}  // namespace convoy
