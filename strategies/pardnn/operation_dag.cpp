// SPDX-License-Identifier: MIT
#include "strategies/pardnn/operation_dag.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "models/frozen.h"
#include "models/tensor_bytes.h"

namespace convoy::inline strategies {
namespace {

/// Bytes of what each operation hands on, for the whole batch.
std::vector<double> result_bytes(const TrainingGraph& graph, double images) {
  const double element = element_bytes(graph.options.precision);
  const TensorBytes tensor_bytes(graph);
  const auto output = [&](const Operation& operation) {
    return tensor_bytes(static_cast<LayerIndex>(operation.layer)) * images;
  };
  std::vector<double> bytes(graph.operations.size(), 0.0);
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& operation = graph.operations[id];
    if (operation.phase == Phase::forward && operation.work.kind != KernelKind::softmax_loss)
      bytes[id] = output(operation);
  }
  for (const Parameter& parameter : graph.parameters)
    bytes[parameter.gradient] += element * static_cast<double>(parameter.elements);
  // What an operation makes besides: gradients, masks, indices, log probabilities. A sum of gradients is
  // written over one of them and made by no buffer of its own.
  std::vector<double> made(graph.operations.size(), 0.0);
  for (const Buffer& buffer : graph.buffers)
    if (buffer.role != BufferRole::image && buffer.memory_class == MemoryClass::activations)
      made[buffer.born] += buffer.bytes_per_image * images + static_cast<double>(buffer.bytes_fixed);
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& operation = graph.operations[id];
    bytes[id] = std::max(bytes[id], made[id]);
    if (bytes[id] == 0 && operation.phase == Phase::data_gradient) bytes[id] = output(operation);
  }
  return bytes;
}

double sum(const std::array<double, memory_class_count>& bytes) {
  double total = 0;
  for (const double b : bytes) total += b;
  return total;
}

}  // namespace

StateBytes layer_resident_bytes(const TrainingGraph& graph, std::uint32_t layer) {
  TrainingGraph one;
  one.options = graph.options;
  for (const Parameter& parameter : graph.parameters)
    if (parameter.layer == layer) one.parameters.push_back(parameter);
  StateBytes bytes = one.resident_bytes();
  bytes[static_cast<std::size_t>(MemoryClass::weights)] +=
      frozen_bytes(frozen_elements(graph.model.layers[layer]), graph.options);
  return bytes;
}

OperationDag operation_dag(const StrategyInput& input, double images, std::uint32_t devices) {
  const TrainingGraph& graph = input.graph;
  const std::vector<double> bytes = result_bytes(graph, images);
  std::vector<double> mean_s(graph.operations.size(), 0.0);
  for (std::uint32_t d = 0; d < devices; ++d) {
    const std::vector<double> prices_s =
        operation_prices_s(graph, images, input.cost, input.machine, input.machine.devices[d]);
    for (OpId id = 0; id < prices_s.size(); ++id) mean_s[id] += prices_s[id] / devices;
  }
  std::vector<OperationDag::Node> nodes;
  std::vector<Dag::Node> figures;
  std::vector<std::pair<NodeId, NodeId>> edges, together;
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& operation = graph.operations[id];
    nodes.push_back(
        {OperationDag::Content::operation, id, operation.name,
         operation.phase == Phase::weight_gradient ? MemoryClass::gradients : MemoryClass::activations});
    figures.push_back({mean_s[id] * 1e6, bytes[id], 0});
    for (const OpId before : operation.inputs) edges.emplace_back(before, id);
  }

  // A layer's kernels read its parameters where they compute with them; the update writes them.
  std::vector<NodeId> variable_of(graph.model.layers.size(), 0);
  std::vector<std::optional<OpId>> update_of(graph.model.layers.size());
  const double element = element_bytes(graph.options.precision);
  for (const Parameter& parameter : graph.parameters) {
    NodeId& variable = variable_of[parameter.layer];
    update_of[parameter.layer] = parameter.update;
    if (variable == 0) {
      variable = static_cast<NodeId>(nodes.size());
      nodes.push_back({OperationDag::Content::variable, parameter.layer,
                       graph.model.layers[parameter.layer].name + ".parameters", MemoryClass::weights});
      figures.push_back({0, 0, sum(layer_resident_bytes(graph, parameter.layer))});
      together.emplace_back(variable, parameter.update);
    }
    figures[variable].output_bytes += element * static_cast<double>(parameter.elements);
  }
  for (std::uint32_t layer = 0; layer < graph.model.layers.size(); ++layer) {
    if (frozen_elements(graph.model.layers[layer]) == 0) continue;
    variable_of[layer] = static_cast<NodeId>(nodes.size());
    nodes.push_back({OperationDag::Content::variable, layer, graph.model.layers[layer].name + ".parameters",
                     MemoryClass::weights});
    figures.push_back({0, 0, sum(layer_resident_bytes(graph, layer))});
  }
  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& operation = graph.operations[id];
    const NodeId variable = variable_of[operation.layer];
    // The layer's own kernels, not the losses and sums of gradients that stand beside them.
    const bool kernel = operation.part == OperationPart::layer && !operation.again;
    const bool reads = operation.phase != Phase::weight_gradient;
    if (variable == 0 || !kernel || !reads) continue;
    edges.emplace_back(variable, id);
    if (graph.model.layers[operation.layer].frozen) together.emplace_back(variable, id);
  }

  const auto image_buffer = std::find_if(graph.buffers.begin(), graph.buffers.end(),
                                         [](const Buffer& b) { return b.role == BufferRole::image; });
  if (image_buffer != graph.buffers.end()) {
    const auto node = static_cast<NodeId>(nodes.size());
    nodes.push_back({OperationDag::Content::images, 0, "images", MemoryClass::activations});
    figures.push_back({0, image_buffer->bytes_per_image * images, 0});
    for (const OpId id : image_buffer->uses) edges.emplace_back(node, id);
  }

  for (OpId id = 0; id < graph.operations.size(); ++id) {
    const Operation& operation = graph.operations[id];
    if (operation.phase != Phase::data_gradient || operation.part != OperationPart::layer) continue;
    const std::optional<OpId> update = update_of[operation.layer];
    if (!update) continue;
    const auto node = static_cast<NodeId>(nodes.size());
    nodes.push_back({OperationDag::Content::end_of_reading, operation.layer,
                     graph.model.layers[operation.layer].name + ".parameters_read",
                     MemoryClass::activations});
    figures.push_back({0, 0, 0});
    edges.emplace_back(id, node);
    edges.emplace_back(node, *update);
    together.emplace_back(id, node);
  }
  return {std::move(nodes), Dag(std::move(figures), edges, together)};
}

PartLink part_link(const Machine& machine, std::uint32_t devices) {
  PartLink link{0, 0};
  Route route;
  for (EndpointId to = 1; to < devices; ++to) {
    machine.router->route(0, to, route);
    double bandwidth_Bps = std::numeric_limits<double>::infinity();
    for (const LinkId id : route.links)
      bandwidth_Bps = std::min(bandwidth_Bps, machine.links[id].bandwidth_Bps);
    link.latency_us += route.latency_s * 1e6;
    link.bandwidth_Bpus += 1e6 / bandwidth_Bps;  // us a byte, so far
  }
  link.latency_us /= devices - 1;
  link.bandwidth_Bpus = (devices - 1) / link.bandwidth_Bpus;
  return link;
}

}  // namespace convoy::strategies
