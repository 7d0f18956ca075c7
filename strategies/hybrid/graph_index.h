// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/training_graph.h"

namespace convoy {

/// Finds a training graph's operations and buffers by layer.
class GraphIndex {
 public:
  /// @param graph must outlive the index
  explicit GraphIndex(const TrainingGraph& graph);

  std::optional<OpId> forward(std::size_t layer) const { return layers_[layer].forward; }  ///< views: none
  std::optional<OpId> data_gradient(std::size_t layer) const { return layers_[layer].data_gradient; }
  std::optional<OpId> weight_gradient(std::size_t layer) const { return layers_[layer].weight_gradient; }
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

  /// The forward buffer that a layer's output lies in; nothing where no operation reads the image.
  std::optional<std::uint32_t> storage(std::size_t layer) const { return layers_[layer].storage; }
  std::optional<std::uint32_t> storage_of(LayerIndex input) const {
    return input == image_input ? image_ : storage(static_cast<std::size_t>(input));
  }
  std::optional<std::uint32_t> image_buffer() const { return image_; }

  /// Buffers that an operation reads or writes.
  const std::vector<std::uint32_t>& used_by(OpId op) const { return used_by_[op]; }
  /// Whether a buffer holds what forward makes (outputs, masks, the image), not a gradient.
  bool is_forward(std::uint32_t buffer) const;
  /// Gradients that an operation makes, in the order of the inputs that they belong to.
  std::vector<std::uint32_t> gradients_born_by(OpId op) const;

 private:
  struct OfLayer {
    std::optional<OpId> forward, data_gradient, weight_gradient, loss_forward, loss_backward;
    std::vector<OpId> sums;
    std::optional<std::uint32_t> storage;
    std::uint32_t readers = 0;
    bool is_image = false, needs_gradient = false;
  };

  void find_operations();
  void find_storage();

  const TrainingGraph& graph_;
  std::vector<OfLayer> layers_;
  std::vector<std::vector<std::uint32_t>> used_by_;
  std::optional<std::uint32_t> image_;
};

}  // namespace convoy
