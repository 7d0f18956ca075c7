// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/layer_costs.h"
#include "models/memory_rules.h"
#include "models/training_graph.h"

namespace convoy::inline models {

/// Builds a training graph layer by layer: forward, the loss, backward, updates. The forward pass is in
/// training_graph.cpp, the loss and the backward pass in training_graph_backward.cpp.
class TrainingGraphBuilder {
 public:
  TrainingGraphBuilder(const Model& model, const TrainingOptions& options);
  TrainingGraph build();

 private:
  using BufferId = std::uint32_t;

  /// A gradient of some tensor, once made. The seed at an output without a loss has no buffer.
  struct Gradient {
    OpId op;  ///< the operation it can be read after
    std::optional<BufferId> buffer;
    bool own;  ///< the buffer belongs to this gradient alone, so a sum may be written over it
  };

  /// Where a tensor lies. Views and in-place results share the storage of what they look at or write over.
  struct Storage {
    BufferId buffer;
    bool exclusive;      ///< no tensor in it has two readers
    bool output_needed;  ///< some layer's data gradient reads a result that lies in it
  };

  static std::size_t at(LayerIndex layer) { return static_cast<std::size_t>(layer); }
  const Layer& layer(std::size_t i) const { return graph_.model.layers[i]; }
  double bytes_of(const Shape& shape) const { return element_ * static_cast<double>(elements(shape)); }

  /// Bytes of a layer's output where it is moved, which may be in single precision where the step is not (autocast.h).
  double moved_bytes(std::size_t i) const {
    return (single_[i] ? 4 : element_) * static_cast<double>(elements(layer(i).output));
  }

  // Operations and buffers.

  OpId add_operation(std::string name, std::size_t i, OperationPart part, const Work& work,
                     std::vector<OpId> inputs);
  OpId add_kernel(std::size_t i, const KernelCost& cost, Phase phase, std::vector<OpId> inputs);
  /// cuDNN's non-fused Winograd F(4x4, 3x3) (Lavin and Gray, arXiv:1509.09308, section 4) keeps the
  /// transforms of its input, filters and output: 6x6 values for each 4x4 tile of a channel's output and each
  /// filter. From how many channels on it is taken is fitted to VGG-16 (results/published/memory.yaml).
  void add_workspace(std::size_t i, OpId op);
  /// What a plan made before training takes beyond what is live at a time.
  void add_plan();
  BufferId add_buffer(std::string name, double bytes, OpId born, BufferRole role = BufferRole::other,
                      std::uint32_t layer = Buffer::no_layer);
  BufferId add_output(std::size_t i, OpId born);
  BufferId add_output_gradient(std::size_t i, OpId born);
  /// Bytes that are there while one operation runs.
  void add_scratch(std::string name, MemoryClass memory_class, double bytes, double bytes_fixed, OpId op,
                   BufferRole role = BufferRole::other);
  /// `op` reads the buffer, which therefore lives until then.
  void use(BufferId buffer, OpId op) {
    graph_.buffers[buffer].dies = std::max(graph_.buffers[buffer].dies, op);
    graph_.buffers[buffer].uses.push_back(op);
  }
  void use_saved(BufferId buffer, OpId op) {
    use(buffer, op);
    if (graph_.buffers[buffer].born < forward_count_) graph_.buffers[buffer].saved = true;
  }

  // Forward. The image and views of it have no operation that makes them.

  void forward(std::size_t i);
  /// Empty for the image before any operation has read it, and for views of it.
  std::optional<Storage> storage_of(LayerIndex input) const {
    return input == image_input ? std::nullopt : storage_[at(input)];
  }
  BufferId input_buffer(LayerIndex input, OpId op);

  // Recomputation. A segment's storages are made anew: those of its first run have gone, but for what later
  // segments and the loss have kept.

  /// First layers of the segments, ascending, the first 0.
  std::vector<std::size_t> segment_layers() const;
  /// As PyTorch's checkpoint, it stops with the last layer that has made something for the backward pass
  /// (torch.utils.checkpoint.set_checkpoint_early_stop).
  void forward_again(std::size_t begin, std::size_t end);
  /// Whether backward before layer `end` reads the layer's result or what it makes besides.
  bool needed_again(std::size_t i, std::size_t end) const;

  // The loss, and where gradients begin.

  Work loss_work(std::size_t i, Phase phase) const;
  void loss_forward(std::size_t i);
  void seed_gradient(std::size_t i);

  // Backward.

  void backward(std::size_t i);
  bool receives_gradient(LayerIndex input) const {
    return input != image_input && needs_gradient_[at(input)];
  }
  /// Whether the layer's data gradient runs: there is something before it to hand a gradient to.
  bool gradient_goes_on(std::size_t i) const;
  void data_gradient(std::size_t i, const Gradient& gradient, bool custom);
  void weight_gradient(std::size_t i, const Gradient& gradient);
  /// The gradient of one use of shared parameters is added to those of the uses whose backward pass came before.
  void add_to_shared_gradient(std::size_t i, OpId op);
  /// One reader's gradient of a layer's output. From the second reader on they are added up, at the cost of
  /// reading two tensors and writing one; a custom layer's given costs hold that already.
  void contribute(std::size_t reader, LayerIndex to, const Gradient& more, bool sum_is_free);
  void update(std::size_t i);
  void share_out_update_kernels();

  TrainingGraph graph_;
  double element_;
  const FrameworkMemory& framework_;
  std::vector<LayerCosts> costs_;
  std::vector<MemoryRules> rules_;
  std::vector<std::uint32_t> readers_;
  std::vector<bool> needs_gradient_;
  std::vector<std::optional<OpId>> forward_;  ///< of a view: of what it looks at; the last run
  std::vector<std::optional<OpId>> first_forward_;
  OpId forward_count_ = 0;                              ///< operations of the first run
  bool again_ = false;                                  ///< forward operations are being run again
  std::vector<std::pair<OpId, BufferId>> overwritten_;  ///< by operations of the first run
  std::vector<std::optional<OpId>> weight_gradient_,
      first_weight_gradient_;  ///< by layer that owns parameters
  std::vector<std::optional<Storage>> storage_;
  std::vector<std::optional<BufferId>> extra_;
  std::vector<bool> single_;                       ///< single_precision_outputs
  std::vector<double> held_bytes_;                 ///< held_bytes_a_value
  std::vector<std::optional<Gradient>> gradient_;  ///< of the layer's output
  std::vector<int> sums_;
  std::optional<BufferId> image_;
  std::vector<std::pair<OpId, BufferId>> losses_;
};

}  // namespace convoy::models
