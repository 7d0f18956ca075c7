// SPDX-License-Identifier: MIT
#include "strategies/hypergraph/node_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/frozen.h"
#include "models/tensor_bytes.h"
#include "sim/lowering/plan_ops.h"
#include "strategies/hypergraph/node_meaning.h"
#include "strategies/hypergraph/node_memory.h"

namespace convoy::inline strategies {
namespace {

class Slicer {
 public:
  Slicer(const NodeShares& shares, std::uint32_t micro_batches, bool meaning)
      : shares_(shares),
        graph_(shares.graph()),
        tensor_bytes_(graph_),
        layers_(shares.layers()),
        images_(shares.images()) {
    work_.images = images_;
    work_.micro_batches = micro_batches;
    work_.devices_a_replica = shares.count();
    if (meaning) meaning_.begin();
  }

  PlacedWork build() {
    std::vector<std::vector<NodeStep>> steps;
    for (std::uint32_t p = 0; p < shares_.count(); ++p) steps.push_back(steps_of(p));
    for (std::uint32_t j = 0; j < layers_.size(); ++j)
      if (!shares_.messages(j).empty()) add_messages(j, steps[shares_.messages(j).front().owner]);
    for (std::uint32_t p = 0; p < shares_.count(); ++p) {
      PlacedDevice& device = work_.devices.emplace_back();
      device.name = fmt::format("part {}", p);
      device.members = {p};
      device.tensors = tensors_of_part(shares_, p, steps[p]);
      for (NodeStep& step : steps[p]) device.steps.push_back(placed(std::move(step)));
      add_update(p, device);
    }
    return std::move(work_);
  }

 private:
  // Messages.

  /// Forward, and where a part sends gradients back, backward.
  /// @param steps of a part that has some of layer j's output
  void add_messages(std::uint32_t j, const std::vector<NodeStep>& steps) {
    const bool gradient = std::any_of(steps.begin(), steps.end(), [&](const NodeStep& step) {
      return !step.forward && step.layer == j && !step.receives.empty();
    });
    for (const bool forward : {true, false}) {
      if (!forward && !gradient) continue;
      message_[{j, forward}] = static_cast<std::uint32_t>(work_.messages.size());
      PlacedMessage& message = work_.messages.emplace_back();
      message.name = fmt::format("{} of {}", forward ? "output" : "gradient", shares_.name_of(j));
      for (const NodeMessage& part : shares_.messages(j))
        message.parts.push_back(
            {forward ? part.owner : part.reader, forward ? part.reader : part.owner, part.bytes});
      message.meaning = meaning_.of_message(j, forward);
    }
  }

  PlacedStep placed(NodeStep step) const {
    // Losses come after the model's layers.
    const std::string what = step.layer < graph_.model.layers.size() ? shares_.name_of(step.layer) : "loss";
    PlacedStep result{fmt::format("{} {}", step.forward ? "forward" : "backward", what),
                      step.forward,
                      false,
                      {},
                      std::move(step.ops),
                      {}};
    for (const NodeExchange& exchange : step.receives) result.receives.push_back(message_.at(exchange));
    for (const NodeExchange& exchange : step.sends) result.sends.push_back(message_.at(exchange));
    return result;
  }

  // Steps. A layer without kernels and messages in this part has none.

  std::vector<NodeStep> steps_of(std::uint32_t p) {
    const auto n = static_cast<std::uint32_t>(layers_.size());
    std::vector<std::vector<NodeExchange>> receives(n), returns(n);  // at the first reader, at the last
    for (std::uint32_t j = 0; j < n; ++j) {
      if (shares_.foreign_bytes(j, p) == 0) continue;
      const std::uint32_t first = shares_.foreign_readers(j, p).front();
      receives[first].push_back({j, true});
      if (layers_[j].gradient) returns[first].push_back({j, false});  // backward comes to it last
    }
    std::vector<NodeStep> steps;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (shares_.share(i, p) == 0) continue;
      NodeStep step{i, true, {}, receives[i], {}};
      if (shares_.sent_bytes(i, p) > 0) step.sends.push_back({i, true});
      if (layers_[i].forward) step.ops.push_back(kernel(i, *layers_[i].forward, p));
      add(std::move(step), steps);
    }
    for (std::uint32_t i = n; i-- > 0;)
      if (shares_.share(i, p) > 0 && layers_[i].gradient) add(backward_of(i, p, returns[i]), steps);
    return steps;
  }

  /// @param returns what it sends back
  NodeStep backward_of(std::uint32_t i, std::uint32_t p, std::vector<NodeExchange> returns) {
    NodeStep step{i, false, {}, {}, std::move(returns)};
    if (shares_.sent_bytes(i, p) > 0) {
      step.receives.push_back({i, false});
      step.ops.push_back(sum_of_partials(i, p));
    }
    const std::vector<OpId> sums = shares_.sums_of(i);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      if (!step.ops.empty()) meaning_.of_nothing(step.ops.back());  // the last one adds up all
      step.ops.push_back(sum_of_readers(i, k, p, true));
    }
    if (!step.ops.empty()) meaning_.of_sum(step.ops.back(), i, true);
    for (const OpId id : layers_[i].backward)
      if (!shares_.is_sum(id)) step.ops.push_back(kernel(i, id, p));
    for (const NodeExchange& sent : step.sends) add_sums_before(sent.layer, p, step);
    return step;
  }

  /// Where there is no kernel (views), an operation without work holds what the step receives.
  void add(NodeStep step, std::vector<NodeStep>& steps) const {
    if (step.ops.empty() && step.receives.empty() && step.sends.empty()) return;
    if (step.ops.empty()) step.ops.push_back(memory_op(shares_.name_of(step.layer) + " view", {}, {}));
    steps.push_back(std::move(step));
  }

  /// What p's readers make of others' nodes of layer j, added up before it is sent.
  void add_sums_before(std::uint32_t j, std::uint32_t p, NodeStep& step) {
    const std::vector<OpId> sums = shares_.sums_of(j);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      PlanOp op = sum_of_readers(j, k, p, false);
      if (op.work == Work{}) break;
      op.operation = PlanOp::of_plan;
      if (k > 0) meaning_.of_nothing(step.ops.back());
      step.ops.push_back(std::move(op));
      step.sent_sums[j] = step.ops.size() - 1;
      meaning_.of_sum(step.ops.back(), j, false);
    }
  }

  /// The graph's sum `k` of gradients of layer j, which adds one to those of k + 1 readers: in part p, of those
  /// of its own nodes, or of others' nodes, of which p has so many readers. Of none there is no kernel.
  PlanOp sum_of_readers(std::uint32_t j, std::size_t k, std::uint32_t p, bool own) const {
    const std::vector<std::uint32_t> gradients = shares_.gradients_in(j, p);
    std::int64_t channels = 0;
    for (std::size_t b = 0; b < gradients.size(); ++b) {
      const NodeBlock& block = layers_[j].blocks[b];
      if (shares_.owns(p, block) == own && gradients[b] >= k + 2) channels += block.end - block.begin;
    }
    const OpId id = shares_.sums_of(j)[k];
    const double share = static_cast<double>(channels) / static_cast<double>(layers_[j].channels);
    const Work work = channels == 0 ? Work{} : part_of(graph_.operations[id].work, 0, share, share);
    return {graph_.operations[id].name, work, images_, {}, {}, id};
  }

  /// Adds up the gradients that other parts have made of p's nodes; where there is one of each, there is no
  /// kernel.
  PlanOp sum_of_partials(std::uint32_t i, std::uint32_t p) const {
    Work work;
    if (const double added = shares_.added_bytes(i, p); added > 0) {
      work.kind = KernelKind::elementwise;
      work.phase = Phase::data_gradient;
      work.flops_per_image = added / tensor_bytes_.of_value(static_cast<LayerIndex>(layers_[i].model_layer));
      work.bytes_per_image = 3 * added;
    }
    return {shares_.name_of(i) + ".partial_gradient_sum", work, images_, {}, {}};
  }

  /// Part p's slice of an operation of layer i. Losses read and write the layer's own nodes only.
  PlanOp kernel(std::uint32_t i, OpId id, std::uint32_t p) {
    const Operation& operation = graph_.operations[id];
    const bool loss = operation.phase == Phase::data_gradient && operation.part != OperationPart::layer;
    const double in_bytes = loss ? 0 : tensor_bytes_.of_inputs(layers_[i].model_layer);
    PlanOp op{operation.name,
              part_of(operation.work, in_bytes, shares_.share(i, p), shares_.input_share(i, p)),
              images_,
              {},
              {},
              id};
    meaning_.of_kernel(op, i, id);
    return op;
  }

  void add_update(std::uint32_t p, PlacedDevice& device) {
    for (const Parameter& parameter : graph_.parameters)
      device.parameters.push_back(static_cast<double>(parameter.elements) *
                                  shares_.share(parameter.layer, p));
    for (std::uint32_t i = 0; i < graph_.model.layers.size(); ++i) {
      const double share = shares_.share(i, p);
      device.frozen_elements += frozen_elements(graph_.model.layers[i]) * share;
      if (share == 0 || !layers_[i].update) continue;
      const OpId id = *layers_[i].update;
      const Work work = part_of(graph_.operations[id].work, 0, share, share);
      meaning_.of_kernel(device.update.emplace_back(PlanOp{graph_.operations[id].name, work, 1, {}, {}, id}),
                         i, id);
    }
  }

  const NodeShares& shares_;
  const TrainingGraph& graph_;
  const TensorBytes tensor_bytes_;
  const std::vector<NodeLayer>& layers_;
  double images_;
  PlacedWork work_;
  NodeMeaning meaning_{shares_, work_};
  std::map<NodeExchange, std::uint32_t> message_;  ///< among those of work_
};

}  // namespace

PlacedWork slice_graph(const NodeShares& shares, std::uint32_t micro_batches, bool meaning) {
  return Slicer(shares, micro_batches, meaning).build();
}

}  // namespace convoy::strategies
