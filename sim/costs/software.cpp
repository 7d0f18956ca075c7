// SPDX-License-Identifier: MIT
#include "sim/costs/software.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"

namespace convoy {
namespace {

constexpr double least = 1e-3, most = 1e3;  // of a factor

void read_costs(YamlMap& map, SoftwareCosts& costs) {
  costs.issue_forward_s = map.quantity_or("issue_forward", Dimension::time, costs.issue_forward_s);
  costs.issue_backward_s = map.quantity_or("issue_backward", Dimension::time, costs.issue_backward_s);
  costs.issue_update_s = map.quantity_or("issue_update", Dimension::time, costs.issue_update_s);
  costs.wait_update_s = map.quantity_or("wait_update", Dimension::time, costs.wait_update_s);
  costs.convolution = map.number_or("convolution", costs.convolution, least, most);
  costs.normalization = map.number_or("normalization", costs.normalization, least, most);
  costs.elementwise = map.number_or("elementwise", costs.elementwise, least, most);
  costs.fused = map.number_or("fused", costs.fused, least, 1);
  costs.one_thread = map.number_or("one_thread", costs.one_thread, least, most);
}

SoftwareCosts read_software(Framework framework, ExecutionMode execution, Layout layout) {
  const YamlNode file =
      load_yaml(fmt::format("{}/{}.yaml", data_path("topologies/catalog/software"), to_string(framework)));
  YamlMap map(file, "");
  SoftwareCosts costs;
  map.text_or("title", "");
  // Every way is there: what is not measured of a framework says from which it is taken.
  for (const std::string_view way : execution_names) {
    YamlMap of_way = map.map(std::string(way));
    if (way == to_string(execution)) read_costs(of_way, costs);
    for (const std::string_view order : layout_names) {
      if (!of_way.find(order)) continue;
      YamlMap of_layout = of_way.map(std::string(order));
      SoftwareCosts unused;
      const bool ours = way == to_string(execution) && order == to_string(layout);
      read_costs(of_layout, ours ? costs : unused);
      of_layout.finish();
    }
    SoftwareCosts unused;
    if (way != to_string(execution)) read_costs(of_way, unused);
    of_way.finish();
  }
  if (map.find("sources")) {
    YamlMap sources = map.map("sources");
    for (const std::string& key : sources.keys()) sources.text(key);
    sources.finish();
  }
  map.finish();
  return costs;
}

}  // namespace

SoftwareCosts software_costs(Framework framework, ExecutionMode execution, Layout layout) {
  static std::map<std::tuple<Framework, ExecutionMode, Layout>, SoftwareCosts> read;
  const std::tuple key{framework, execution, layout};
  const auto it = read.find(key);
  if (it != read.end()) return it->second;
  return read.emplace(key, read_software(framework, execution, layout)).first->second;
}

}  // namespace convoy
