// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "models/layer_operations.h"
#include "sim/plan/meaning.h"
#include "sim/prove/layer_maps.h"

namespace convoy::inline runs {

/// Which parts of which tensors operations of the training graph read and write, and results are. Tensors are called
/// by layers that have operations of their own: the output of a view is that of which it is a view, and the gradient
/// that a layer hands on as it is, that of its inputs.
class TensorParts {
 public:
  enum class Tensor : std::uint8_t { images, output, output_gradient, parameters, parameter_gradients };
  struct Part {
    Tensor tensor;
    std::uint32_t layer;  ///< of all but images; of parameters, whose they are
    prove::Box box;
  };
  using Parts = std::vector<Part>;

  /// @param images of a micro-batch  @param has_image_views results may be views of images (Meaning::image_views)
  TensorParts(const TrainingGraph& graph, std::int64_t images, bool has_image_views);

  const prove::LayerMaps& maps() const { return maps_; }
  static bool is_of_parameters(Tensor tensor) {
    return tensor == Tensor::parameters || tensor == Tensor::parameter_gradients;
  }
  /// @param work the part of the layer's work that the operation does
  Parts reads(OpId operation, const prove::Box& work) const;
  Parts writes(OpId operation, const prove::Box& work) const;
  /// @param box of the result's own tensor
  Parts parts_of(const CommMeaning::Result& result, const prove::Box& box) const;
  void add_output(LayerIndex layer, const prove::Box& box, Parts& parts) const;
  void add_gradient(LayerIndex layer, const prove::Box& box, Parts& parts) const;
  /// @param tensor parameters or their gradients  @param work of the layer
  void add_parameters(std::uint32_t layer, Tensor tensor, const prove::Box& work, Parts& parts) const;
  prove::Box whole(const Part& part) const;
  prove::Box whole(const CommMeaning::Result& result) const;

 private:
  const TrainingGraph& graph_;
  const prove::LayerMaps maps_;
  bool has_image_views_;
  LayerOperations has_;
  std::vector<bool> reads_images_;  ///< by operation
};

}  // namespace convoy::runs
