// SPDX-License-Identifier: MIT
// What the comparisons promise: results/published/gates.yaml.
#include <fmt/format.h>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/studies/reproduce.h"

namespace convoy::inline studies {
namespace {

YamlNode load_gates() { return load_yaml(data_path("results/published") + "/gates.yaml"); }

std::optional<double> share(YamlMap& map, std::string_view key) {
  return map.has(key) ? std::optional(map.number(key, 0, 1)) : std::nullopt;
}

}  // namespace

void read_tolerances(Reproduction& reproduction) {
  const YamlNode file = load_gates();
  YamlMap map = YamlMap(file, "").map(reproduction.name);
  reproduction.mean_tolerance = map.number("mean", 0, 1);
  reproduction.median_tolerance = share(map, "median");
  reproduction.worst_tolerance = share(map, "worst");
  reproduction.rare_tolerance = share(map, "rare");
  reproduction.explained_tolerance = share(map, "explained");
  reproduction.order_tolerance = share(map, "order");
  reproduction.bias_tolerance = share(map, "bias");
  if (reproduction.bias_tolerance)
    for (const YamlNode& group : map.node("bias_groups").items)
      reproduction.bias_groups.push_back(read_text(group, map.path_of("bias_groups")));
  if (map.has("coverage")) {
    const YamlNode& coverage = map.node("coverage");
    if (coverage.kind != YamlNode::Kind::sequence || coverage.items.size() != 2)
      map.fail("coverage", "expected the least and the most, such as [0.7, 0.9]");
    std::array<double, 2>& range = reproduction.coverage_range.emplace();
    for (std::size_t i = 0; i < 2; ++i)
      range[i] = read_number(coverage.items[i], map.path_of("coverage"), 0, 1);
  }
  reproduction.because = map.text("because");
  map.finish();
}

double worst_median_of_kernels() {
  const YamlNode file = load_gates();
  YamlMap map = YamlMap(file, "").map("layers");
  const double worst = map.number("worst", 0, 1);
  map.text("because");
  map.finish();
  return worst;
}

}  // namespace convoy::studies
