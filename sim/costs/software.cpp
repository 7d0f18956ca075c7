// SPDX-License-Identifier: MIT
#include "sim/costs/software.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "sim/base/data_path.h"
#include "sim/base/yaml_map.h"
#include "sim/costs/kernel_layout.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"
#include "topologies/device.h"

namespace convoy::inline costs {
namespace {

constexpr double least = 1e-3, most = 1e3;  // of a factor

void read_costs(YamlMap& map, SoftwareCosts& costs) {
  costs.issue_forward_s = map.quantity_or("issue_forward", Dimension::time, costs.issue_forward_s);
  costs.issue_backward_s = map.quantity_or("issue_backward", Dimension::time, costs.issue_backward_s);
  costs.issue_update_s = map.quantity_or("issue_update", Dimension::time, costs.issue_update_s);
  costs.issue_step_s = map.quantity_or("issue_step", Dimension::time, costs.issue_step_s);
  costs.feed_Bps = map.quantity_or("feed", Dimension::bandwidth, costs.feed_Bps);
  costs.wait_update_s = map.quantity_or("wait_update", Dimension::time, costs.wait_update_s);
  costs.convolution = map.number_or("convolution", costs.convolution, least, most);
  costs.normalization = map.number_or("normalization", costs.normalization, least, most);
  costs.elementwise = map.number_or("elementwise", costs.elementwise, least, most);
  costs.depthwise = map.number_or("depthwise", costs.depthwise, least, most);
  costs.kepler = map.number_or("kepler", costs.kepler, least, most);
  costs.half = map.number_or("half", costs.half, least, most);
  costs.fused = map.number_or("fused", costs.fused, least, 1);
  costs.one_thread = map.number_or("one_thread", costs.one_thread, least, most);
}

/// What the catalogue's file says of a way of execution.
struct WayOfExecution {
  SoftwareCosts costs;
  int rows = 0;
};

WayOfExecution read_software(Framework framework, ExecutionMode execution, Layout layout) {
  const YamlNode file =
      load_yaml(fmt::format("{}/{}.yaml", data_path("topologies/catalog/software"), to_string(framework)));
  YamlMap map(file, "");
  WayOfExecution found;
  map.text_or("title", "");
  // Every way is there: what is not measured of a framework says from which it is taken.
  for (const std::string_view way : execution_names) {
    YamlMap of_way = map.map(std::string(way));
    const auto rows = static_cast<int>(of_way.integer_or("rows", 0, 0));
    if (way == to_string(execution)) {
      read_costs(of_way, found.costs);
      found.rows = rows;
    }
    for (const std::string_view order : layout_names) {
      if (!of_way.find(order)) continue;
      YamlMap of_layout = of_way.map(std::string(order));
      SoftwareCosts unused;
      const bool ours = way == to_string(execution) && order == to_string(layout);
      read_costs(of_layout, ours ? found.costs : unused);
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
  return found;
}

const WayOfExecution& way_of_execution(Framework framework, ExecutionMode execution, Layout layout) {
  static std::map<std::tuple<Framework, ExecutionMode, Layout>, WayOfExecution> read;
  const std::tuple key{framework, execution, layout};
  const auto it = read.find(key);
  if (it != read.end()) return it->second;
  return read.emplace(key, read_software(framework, execution, layout)).first->second;
}

}  // namespace

SoftwareCosts software_costs(Framework framework, ExecutionMode execution, Layout layout) {
  return way_of_execution(framework, execution, layout).costs;
}

int software_kernel_rows(Framework framework, ExecutionMode execution) {
  const auto rows = [&](ExecutionMode way) { return way_of_execution(framework, way, Layout::nchw).rows; };
  if (execution == ExecutionMode::compiled) return rows(execution);
  return rows(ExecutionMode::eager) + rows(ExecutionMode::graph);
}

double software_spread(Framework framework, ExecutionMode execution) {
  return software_kernel_rows(framework, execution) > 0 ? 0 : unknown_spread(Unknown::software);
}

Software::Software(const TrainingOptions& options)
    : precision(options.precision),
      layout(kernel_layout(options)),
      execution(options.execution),
      costs(software_costs(options.framework, options.execution, layout)),
      one_process_a_host(options.one_process_a_host) {
  costs.plain_tensors = options.framework == Framework::pytorch || options.framework == Framework::pytorch1;
  costs.issue_update_s *= update_issue_share(options.framework, options.update_mode(), options.optimizer);
}

double unseen_kernels_spread(const DeviceType& device, Precision precision, const SoftwareCosts& costs) {
  constexpr double prior_of_convolution_3x3 = 0.4;
  if (device.evidence_spread == 0) return 0;
  const bool half = precision == Precision::fp16 || precision == Precision::bf16;
  const bool unseen = device.kind->in_process ? costs.one_thread == 0 && device.evidence_left_out_error == 0
                                              : half && !device.has_tensor_cores();
  return unseen ? prior_of_convolution_3x3 : 0;
}

}  // namespace convoy::costs
