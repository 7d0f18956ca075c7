// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sim/numerics/device_values.h"
#include "sim/numerics/gradient_parts.h"
#include "sim/plan/plan.h"
#include "sim/prove/layer_maps.h"

namespace convoy::inline numerics {

/// What devices that work on the same images between them have in common.
struct PartLesson {
  const Lesson& lesson;
  const Meaning& meaning;
  LayerMaps maps;  ///< of a micro-batch
  GradientContents contents;
  /// Of a plan in nodes, whose devices add up all parts of a gradient at once (OpMeaning::Act::add without an
  /// operation): layouts by layer, of whose gradient devices send each other parts: who adds up which elements.
  bool adds_all = false;
  std::map<std::uint32_t, std::uint32_t> added_by;
  /// Layers of whose parameters devices send each other the gradients of a micro-batch. What comes is added to
  /// those of the micro-batches before (OpMeaning::Act::add) where there are several.
  std::set<std::uint32_t> sends_gradients_of;
  bool adds_gradients = false;

  PartLesson(const Lesson& of, const Meaning& with, std::int64_t images);
  /// What of `whole` an endpoint has in a layout of the plan.
  Box in_layout(std::uint32_t layout, EndpointId endpoint, const Box& whole) const;
  /// All of the tensor that a message has something of.
  Box tensor(const CommMeaning::Result& result) const {
    const bool of_image = result.operation == no_meaning && !is_image_view(result.layer);
    return of_image ? maps.image_tensor() : maps.tensor(result.layer);
  }
  /// Whether devices read parts of the image as this layer makes them, which computes nothing (Meaning::image_views).
  bool is_image_view(std::uint32_t layer) const;
  /// Whether an operation of a layer reads the values of the layer's input k, or, of a gradient, those of its output.
  bool reads_input(OpId operation, std::size_t k) const;
  bool reads_output(OpId operation) const;
  /// All work of the owner of a layer's parameters that has the same parameters as some work of the layer.
  Box parameter_part(std::uint32_t layer, const Box& work) const;
  /// The part of an operation's work that a device does.
  Box own_work(OpId operation, EndpointId device) const {
    return in_layout(layout_of_[operation], device, maps.work(lesson.graph.operations[operation].layer));
  }
  /// Whether an element of a parameter (TrainingGraph::parameters) belongs to a part of its layer's work.
  bool has_element(std::size_t parameter, std::size_t element, const Box& part) const;

 private:
  bool reads_forward(OpId operation, std::uint32_t layer) const;
  std::set<OpId> reads_images_;
  std::vector<std::uint32_t> layout_of_;  ///< by operation
};

/// Of an output's elements: those of a part of an operation's work, without the terms that it adds up.
inline Box elements_alone(Box work) {
  work[Box::inputs] = all_of(1);
  return work;
}
/// All channels and places of the images of a box.
inline Box whole_images(Box tensor, const Box& of) {
  tensor[Box::images] = of[Box::images];
  return tensor;
}

}  // namespace convoy::numerics
