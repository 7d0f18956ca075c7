// SPDX-License-Identifier: MIT
#include "sim/lowering/stages.h"

#include <map>
#include <utility>

#include "sim/lowering/device_stage.h"

namespace convoy::inline lowering {
namespace {

/// What the transfers of a schedule add up to between stages.
std::vector<StageEdge> edges_of(const GraphSchedule& schedule) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, StageEdge> edges;
  for (const GraphSchedule::Transfer& transfer : schedule.transfers) {
    const std::uint32_t from = transfer.backward ? transfer.to : transfer.from;
    const std::uint32_t to = transfer.backward ? transfer.from : transfer.to;
    StageEdge& edge = edges.try_emplace({from, to}, StageEdge{from, to}).first->second;
    (transfer.backward ? edge.backward_bytes : edge.forward_bytes) += transfer.bytes_per_image;
    (transfer.backward ? edge.backward : edge.forward).push_back(transfer.result);
  }
  std::vector<StageEdge> result;
  for (const auto& [ends, edge] : edges) result.push_back(edge);
  return result;
}

/// Each buffer by itself, as the framework's allocator sees them.
std::vector<MemoryDelta> deltas(const std::vector<StageMemory>& memory, double images) {
  std::vector<MemoryDelta> result;
  result.reserve(memory.size());
  for (const StageMemory& part : memory)
    if (const double bytes = part.bytes_per_image * images + part.bytes_fixed; bytes > 0)
      result.push_back({part.memory_class, bytes});
  return result;
}

}  // namespace

Stages cut_into_stages(const TrainingGraph& graph, const Units& units,
                       const std::vector<std::uint32_t>& first_units, bool recomputes) {
  const std::vector<std::uint32_t> stage_of_layer = stages_of_layers(units, first_units);
  const std::vector<LayerSharding> shardings = replicated_layers(graph.model);
  const auto stages = [&](const GraphSchedule& schedule) {
    std::vector<Stage> result;
    for (std::uint32_t s = 0; s < first_units.size(); ++s)
      result.push_back(device_stage(graph, shardings, schedule, stage_of_layer, s, 0).stage);
    return result;
  };
  const GraphSchedule schedule = schedule_graph(graph, shardings, any_images(), std::nullopt, stage_of_layer);
  Stages result{stages(schedule), edges_of(schedule)};
  if (!recomputes) return result;
  std::vector<Stage> light =
      stages(schedule_graph(graph, shardings, any_images(), std::nullopt, stage_of_layer, true));
  for (std::size_t s = 0; s < light.size(); ++s) {
    result.stages[s].light_forward = std::move(light[s].forward);
    result.stages[s].full_backward = std::move(light[s].backward);
  }
  return result;
}

Stage whole_network(const TrainingGraph& graph) {
  const std::vector<std::uint32_t> stage_of_layer(graph.model.layers.size(), 0);
  const std::vector<LayerSharding> shardings = replicated_layers(graph.model);
  const GraphSchedule schedule = schedule_graph(graph, shardings, any_images(), std::nullopt);
  return device_stage(graph, shardings, schedule, stage_of_layer, 0, 0).stage;
}

const Stages& WholeNetwork::stages() const {
  if (!stages_) stages_.emplace(Stages{{whole_network(*graph_)}, {}});
  return *stages_;
}

PlanOp plan_op(const StageOp& op, double images, const std::string& suffix) {
  const OpId of_graph = op.again || op.op == StageOp::none ? PlanOp::of_plan : op.op;
  return {op.name + suffix,         op.work, op.images.value_or(images), deltas(op.allocates, images),
          deltas(op.frees, images), of_graph};
}

}  // namespace convoy::lowering
