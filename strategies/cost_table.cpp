// SPDX-License-Identifier: MIT
#include "strategies/cost_table.h"

#include <algorithm>
#include <limits>

#include "sim/costs/issue_queue.h"
#include "sim/lowering/buckets.h"
#include "strategies/split_time.h"

namespace convoy::inline strategies {
namespace {

/// Of one device, or of each of several that split all layers among them.
CostTable::Passes passes_of(const TrainingGraph& graph, const CostModel& cost, double images,
                            const DeviceType& type, double speed, const CostTable::Split& split) {
  const std::vector<Operation>& operations = graph.operations;
  CostTable::Passes passes;
  const double begin_s = cost.begin_s(type);
  IssueQueue queue(begin_s);
  std::vector<double> ends_s(operations.size(), 0.0);
  for (std::size_t o = 0; o < operations.size(); ++o) {
    const Operation& operation = operations[o];
    if (operation.again) continue;  // what recomputation adds only makes steps longer
    const bool update = operation.phase == Phase::update;
    if (update && split.devices > 1) continue;
    const double time_s = (split.devices > 1 ? least_split_time_s(graph, operation, images, split.devices,
                                                                  split.grid, cost, type)
                                             : cost.time_s(operation.work, update ? 1 : images, type)) /
                          speed;
    if (update) {
      passes.update_s += time_s;
      continue;
    }
    (operation.phase == Phase::forward ? passes.forward_s : passes.backward_s) += time_s;
    queue.run(cost.issue_s(operation.work, images, type), time_s);
    for (const OpId input : operation.inputs) ends_s[o] = std::max(ends_s[o], ends_s[input]);
    ends_s[o] += time_s;
    passes.chain_s = std::max(passes.chain_s, ends_s[o]);
  }
  passes.issued_s = queue.end_s();
  passes.host_s = queue.issued_s() - begin_s;
  return passes;
}

}  // namespace

CostTable::CostTable(const TrainingGraph& graph, const Machine& machine, const CostModel& cost)
    : graph_(graph), machine_(machine), cost_(cost) {
  for (const Device& device : machine.devices) kinds_.emplace(device.type, device.speed);
}

const std::vector<CostTable::Passes>& CostTable::of_kinds(double images, const Split& split) {
  const auto [row, fresh] = rows_.try_emplace({images, split.devices, split.grid ? split.grid->h : 0});
  if (!fresh) return row->second;
  for (const auto& [type, speed] : kinds_)
    row->second.push_back(passes_of(graph_, cost_, images, machine_.device_types[type], speed, split));
  return row->second;
}

double CostTable::spread_largest_tensor_s() {
  if (spread_s_) return *spread_s_;
  double largest_bytes = 0, widest_Bps = 0;
  for (const Bucket& tensor : bucket_per_tensor(graph_))
    largest_bytes = std::max(largest_bytes, tensor.bytes);
  std::vector<LinkId> out, in;
  for (EndpointId e = 0; e < machine_.endpoint_count(); ++e) {
    if (!machine_.router->halves(e, out, in)) return *(spread_s_ = 0);
    double narrowest_Bps = std::numeric_limits<double>::infinity();
    for (const LinkId link : out) narrowest_Bps = std::min(narrowest_Bps, machine_.links[link].bandwidth_Bps);
    widest_Bps = std::max(widest_Bps, narrowest_Bps);
  }
  const auto others = static_cast<double>(machine_.hosts.size() - 1);
  return *(spread_s_ = others * largest_bytes / widest_Bps);
}

CostTable::Passes CostTable::quickest(double images, const Split& split) {
  const std::vector<Passes>& kinds = of_kinds(images, split);
  Passes least = kinds.front();
  for (const Passes& kind : kinds)
    for (double Passes::*number : {&Passes::forward_s, &Passes::backward_s, &Passes::update_s,
                                   &Passes::issued_s, &Passes::host_s, &Passes::chain_s})
      least.*number = std::min(least.*number, kind.*number);
  return least;
}

}  // namespace convoy::strategies
