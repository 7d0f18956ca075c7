// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/training_graph.h"

namespace convoy::inline lowering {

/// Finds a training graph's operations and buffers by layer.
class GraphIndex {
 public:
  /// @param graph must outlive the index
  explicit GraphIndex(const TrainingGraph& graph);

  std::optional<OpId> forward(std::size_t layer) const { return layers_[layer].forward; }  ///< views: none
  /// The forward operation that is run again for the backward pass.
  std::optional<OpId> forward_again(std::size_t layer) const { return layers_[layer].again; }
  std::optional<OpId> data_gradient(std::size_t layer) const { return layers_[layer].data_gradient; }
  std::optional<OpId> weight_gradient(std::size_t layer) const { return layers_[layer].weight_gradient; }
  std::optional<OpId> update(std::size_t layer) const { return layers_[layer].update; }
  std::optional<OpId> loss_forward(std::size_t layer) const { return layers_[layer].loss_forward; }
  std::optional<OpId> loss_data_gradient(std::size_t layer) const { return layers_[layer].loss_backward; }
  /// Of gradients of the layer's output, in order.
  const std::vector<OpId>& sums(std::size_t layer) const { return layers_[layer].sums; }

  bool is_output(std::size_t layer) const { return layers_[layer].readers == 0; }
  bool is_image(std::size_t layer) const { return layers_[layer].is_image; }  ///< or a view of it
  bool needs_gradient(std::size_t layer) const { return layers_[layer].needs_gradient; }
  bool receives_gradient(LayerIndex input) const {
    return input != image_input && needs_gradient(static_cast<std::size_t>(input));
  }

  /// The buffer that a forward operation makes for its layer's output; nothing where it computes in place.
  std::optional<std::uint32_t> output_born_by(OpId op) const;
  /// Nothing where no operation reads the image.
  std::optional<std::uint32_t> image_buffer() const { return image_; }

  /// Layers begin ... end - 1, some of which have a forward operation that is run again. All of these run
  /// before the backward pass of layer end - 1 begins.
  struct Segment {
    std::size_t begin, end;
  };
  /// What is recomputed, in the order of the layers.
  const std::vector<Segment>& segments() const { return segments_; }

  /// Buffers that an operation reads or writes.
  const std::vector<std::uint32_t>& used_by(OpId op) const { return used_by_[op]; }
  /// Whether a buffer holds what forward makes (outputs, masks, the image), not a gradient or scratch.
  bool is_forward(std::uint32_t buffer) const;
  /// Buffers that are in memory only while one operation runs: workspaces, and gradients of parameters that
  /// are added to gradients that are in memory already.
  std::vector<std::uint32_t> scratch_of(OpId op) const;
  /// Gradients that an operation makes, in the order of the inputs that they belong to.
  std::vector<std::uint32_t> gradients_born_by(OpId op) const;

 private:
  struct OfLayer {
    std::optional<OpId> forward, again, data_gradient, weight_gradient, update, loss_forward, loss_backward;
    std::vector<OpId> sums;
    std::uint32_t readers = 0;
    bool is_image = false, needs_gradient = false;
  };

  bool is_scratch(std::uint32_t buffer) const;
  void find_operations();
  void find_segments();
  void find_readers();

  const TrainingGraph& graph_;
  std::vector<OfLayer> layers_;
  std::vector<std::vector<std::uint32_t>> used_by_;
  std::optional<std::uint32_t> image_;
  std::vector<Segment> segments_;
};

}  // namespace convoy::lowering
