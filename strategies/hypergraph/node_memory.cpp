// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_memory.h"

#include "models/memory_rules.h"

namespace convoy::inline strategies {
namespace {

using Tensors = std::vector<LiveTensor<MemoryDelta>>;
/// Positions of the first and the last operation of each step: by layer and direction.
using StepPositions = std::map<std::pair<std::uint32_t, bool>, Lifetime>;

/// Share of a buffer that part p has when it runs its share of layer i's operation that makes it.
double buffer_share(const NodeShares& shares, const Buffer& buffer, std::uint32_t i, std::uint32_t p) {
  const TrainingGraph& graph = shares.graph();
  const NodeLayer& node = shares.layers()[i];
  if (graph.operations[buffer.born].phase == Phase::forward)
    return buffer.role == BufferRole::image && node.reads_image ? 1 : shares.share(i, p);
  for (const NodeLayer::Input& input : node.inputs)
    if (buffer.role == BufferRole::output_gradient &&
        buffer.layer == shares.layers()[input.layer].model_layer && i < graph.model.layers.size())
      return shares.read_share(i, input, p);
  return shares.share(i, p);
}

/// Copies of other parts' outputs.
void add_copies(const NodeShares& shares, std::uint32_t p, const StepPositions& of_step, Tensors& tensors) {
  const TrainingGraph& graph = shares.graph();
  for (std::uint32_t j = 0; j < shares.layers().size(); ++j) {
    const double bytes = shares.foreign_bytes(j, p);
    if (bytes == 0) continue;
    Lifetime life;
    const auto use_in = [&](std::uint32_t i, bool forward) {
      const auto step = of_step.find({i, forward});
      if (step == of_step.end()) return;
      life.use(step->second.first);
      life.use(step->second.last);
    };
    for (const std::uint32_t i : shares.foreign_readers(j, p)) {
      use_in(i, true);
      if (i >= graph.model.layers.size()) continue;
      const MemoryRules rules =
          memory_rules(graph.model, shares.layers()[i].model_layer, graph.options.framework);
      if (rules.input_for_data || rules.input_for_weights) use_in(i, false);
    }
    tensors.push_back({{MemoryClass::activations, bytes}, life});
  }
}

}  // namespace

Tensors tensors_of_part(const NodeShares& shares, std::uint32_t p, const std::vector<NodeStep>& steps) {
  const TrainingGraph& graph = shares.graph();
  std::size_t count = 0;
  std::vector<std::size_t> positions(graph.operations.size(), Lifetime::nowhere), before_sent = positions;
  std::vector<std::uint32_t> node_of(graph.operations.size());
  StepPositions of_step;
  Tensors tensors;
  for (const NodeStep& step : steps) {
    const std::size_t begin = count;
    count += step.ops.size();
    of_step[{step.layer, step.forward}] = {begin, count - 1};
    for (std::size_t k = 0; k < step.ops.size(); ++k) {
      if (step.ops[k].operation == PlanOp::of_plan) continue;
      node_of[step.ops[k].operation] = step.layer;
      positions[step.ops[k].operation] = begin + k;
    }
    for (const auto& [layer, k] : step.sent_sums)
      for (const OpId sum : shares.sums_of(layer)) before_sent[sum] = begin + k;
    if (!step.forward && !step.receives.empty())  // partial gradients, while they are added
      tensors.push_back({{MemoryClass::activations, shares.sent_bytes(step.layer, p)}, {begin, begin}});
  }
  for (const Buffer& buffer : graph.buffers) {
    if (positions[buffer.born] == Lifetime::nowhere) continue;
    const double bytes =
        bytes_of(buffer, shares.images()) * buffer_share(shares, buffer, node_of[buffer.born], p);
    if (bytes == 0) continue;
    Lifetime life = lifetime_of(buffer, positions);
    if (const Lifetime added = lifetime_of(buffer, before_sent); added.is_used()) life.use(added.last);
    tensors.push_back({{buffer.memory_class, bytes}, life});
  }
  add_copies(shares, p, of_step, tensors);
  return tensors;
}

}  // namespace convoy::strategies
