// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/framework.h"
#include "models/model.h"
#include "models/optimizer_update.h"
#include "models/work.h"

namespace convoy::inline models {

using OpId = std::uint32_t;

/// What an operation belongs to, beside its layer and phase.
enum class OperationPart : std::uint8_t {
  layer,         ///< the layer itself
  loss,          ///< on the layer's output
  gradient_sum,  ///< of gradients that several readers of the layer's output have made
};

/// One kernel (or group of kernels that always run together) of a training step.
struct Operation {
  std::string name;     ///< "conv1.forward", "conv1.data_gradient", "conv1.weight_gradient", "conv1.update"
  std::uint32_t layer;  ///< index into TrainingGraph::model.layers
  Phase phase;
  Work work;
  std::vector<OpId> inputs;  ///< operations whose results this one reads; all smaller than its own id
  std::uint32_t reader =
      no_reader;  ///< of a gradient sum: index of the layer whose part it adds to the others'
  static constexpr std::uint32_t no_reader = 0xffffffff;
  bool again = false;  ///< a forward operation run a second time for the backward pass: recomputation
  OperationPart part = OperationPart::layer;
};

/// Who a byte of device memory belongs to; the order is that of results.json.
enum class MemoryClass : std::uint8_t { weights, gradients, optimizer, activations, workspace, reserved };
inline constexpr std::size_t memory_class_count = 6;
inline constexpr std::array<std::string_view, memory_class_count> memory_class_names{
    "weights", "gradients", "optimizer", "activations", "workspace", "reserved"};

/// What a buffer holds.
enum class BufferRole : std::uint8_t {
  image,               ///< what the network reads
  output,              ///< of its layer
  output_gradient,     ///< of its layer's output
  parameter_gradient,  ///< of its layer, until it is added to those there
  other,               ///< masks, indices, probabilities, workspaces
};

/// A buffer that lives within a step: allocated when operation `born` starts, freed when operation `dies` has
/// ended. Activations (saved for backward or not), gradients of activations, masks, indices, workspaces.
struct Buffer {
  std::string name;
  MemoryClass memory_class;
  double bytes_per_image;
  std::int64_t bytes_fixed;
  OpId born;
  OpId dies;
  bool saved;  ///< kept from forward for backward (what saved_activation_bytes counts; of the loss: not)
  std::vector<OpId> uses{};  ///< operations that write or read it, ascending: from `born` to `dies`
  BufferRole role = BufferRole::other;
  std::uint32_t layer = no_layer;  ///< of the roles that have one: index into TrainingGraph::model.layers
  static constexpr std::uint32_t no_layer = 0xffffffff;
};

/// One parameter tensor, the unit of gradient buckets and of parameter-server shards.
struct Parameter {
  std::string name;  ///< "conv1.weight"
  std::uint32_t layer;
  std::int64_t elements;
  OpId first_use;            ///< the forward operation that reads it first
  OpId gradient;             ///< the operation that completes its gradient
  OpId update;               ///< the operation that updates it
  std::uint32_t tensor = 0;  ///< index into the layer's parameters
  /// The operation that makes the first part of its gradient: `gradient`, unless several layers use the parameter.
  OpId first_gradient = 0;
};

/// What is kept of the forward pass for the backward pass: everything, or the ends of segments, whose insides
/// run again when backward reaches them (Chen et al., arXiv:1604.06174; segments.h).
enum class Recomputation : std::uint8_t { none, blocks, sqrt };
inline constexpr std::array<std::string_view, 3> recomputation_names{"none", "blocks", "sqrt"};

/// Bytes of device memory by class.
using StateBytes = std::array<double, memory_class_count>;

struct TrainingOptions {
  Precision precision = Precision::fp32;
  Optimizer optimizer = Optimizer::sgd;
  Recomputation recompute = Recomputation::none;
  Framework framework = Framework::pytorch;
  ExecutionMode execution = ExecutionMode::eager;
  Layout layout = Layout::nchw;
  bool on_tokens = false;  ///< its values lie channels last, whatever `layout` (token_order.h): of the model
  bool one_process_a_host = false;     ///< else one a device
  std::optional<UpdateMode> update{};  ///< the framework's default where absent

  UpdateMode update_mode() const { return update ? *update : update_modes(framework).front(); }
  bool operator==(const TrainingOptions&) const = default;
};

/// Everything one training step of one replica does, for any batch. `operations` is in execution order
/// (forward in the model's topological order, backward mirrored, each layer's data gradient before its weight
/// gradient, then the updates; what is recomputed of the forward pass right before the backward pass of its
/// segment), which is also a topological order. Plain values; Boost.Graph is used inside
/// models/ only.
struct TrainingGraph {
  Model model;
  TrainingOptions options;
  std::vector<Operation> operations;
  std::vector<Buffer> buffers;
  std::vector<Parameter> parameters;  ///< in the model's order

  /// Bytes of one copy of the parameters in the precision gradients are sent in (element_bytes of the
  /// precision).
  double gradient_bytes() const;
  /// Resident bytes of a replica by class: weights (with fp32 master copies under mixed precision and what
  /// copies the framework keeps), gradients, optimizer state. Activations, workspace and reserve are 0 here:
  /// they are buffers or belong to the device.
  StateBytes resident_bytes() const;
};

/// The same for a part of the parameters.
StateBytes resident_bytes(double elements, const TrainingOptions& options);
/// The same where a parameter server keeps the optimizer's state.
StateBytes without_optimizer(StateBytes bytes);

/// Operations, buffers and parameters of training `model`.
/// FLOPs: forward from the layer's shape; a convolution's or linear layer's data gradient and weight gradient
/// each as much as its forward; what lies between the image and the first layer with parameters has no data
/// gradient. `custom` layers: as given, the backward FLOPs in equal parts in data and weight gradient (all in
/// data gradient when it has no parameters); forward and backward each move memory_bytes; their update and
/// the adding up of gradients they make cost nothing beside that. Every kernel is an operation of its own;
/// views (flatten, slice, the gradients of add and concat) are none. A tensor that several layers read has an
/// operation "NAME.gradient_sum" (data_gradient, elementwise) for each reader after the first. A layer has
/// one weight gradient and one update for all its parameters, which has its share of the kernels that update
/// all tensors (TrainingOptions::update_mode). Layers that use the parameters of another one (Layer::weights_of) have a
/// weight gradient each, which waits for that of the use whose backward pass came before it and is added to it; the last
/// one is the owner's, before the only update. With `loss: cross_entropy` each output of the
/// model has "NAME.loss.forward" and "NAME.loss.data_gradient". With recomputation the forward operations of
/// every segment but the last, up to the last one whose result its backward pass reads, have a second
/// operation "NAME.forward again" of the same work, but for the loss of its own weights.
TrainingGraph build_training_graph(const Model& model, const TrainingOptions& options);

/// What the framework keeps between forward and backward for one more image: the bytes an image of all saved
/// buffers. The rules stand in memory_rules.cpp.
double saved_activation_bytes(const TrainingGraph& graph);

}  // namespace convoy::models
