// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/locality.h"
#include "models/training_graph.h"
#include "sim/prove/box.h"

namespace convoy::inline prove {

/// Which parts of tensors belong to a part of what a layer does, from the definitions of the layers
/// (models/locality.h). A tensor's axes are images, channels, rows and columns; one of fewer dimensions has
/// one row, or one column, and one of more has all others in its columns. What a layer does has a fifth axis,
/// of the terms that it adds up for an element of its output: channels of the input where channels mix,
/// positions of the image where it takes a mean over all of them; else there is one.
class LayerMaps {
 public:
  /// @param images of a micro-batch on the devices that work on it together
  LayerMaps(const TrainingGraph& graph, std::int64_t images);

  std::int64_t images() const { return images_; }
  Box image_tensor() const { return box_of(graph_.model.input); }
  Box tensor(std::size_t layer) const { return box_of(graph_.model.layers[layer].output); }
  Box work(std::size_t layer) const;  ///< all that the layer does
  /// The elements of input k that a part of a layer's work reads, and of whose gradient it makes a term.
  Box read(std::size_t layer, std::size_t k, const Box& work) const;
  /// The work of a layer that reads some of these elements of its input k.
  Box readers(std::size_t layer, std::size_t k, const Box& elements) const;
  /// Elements of input k which only some elements of the layer's output are made of; for layers that hand
  /// their gradient on as it is.
  Box handed_on(std::size_t layer, std::size_t k, const Box& output) const;

 private:
  struct Windows {
    std::vector<IndexSet> of_output;  ///< by row, or channel, of the output
  };
  /// Channels that follow one another both in an input and in the output, whose they become.
  struct Run {
    std::size_t input;  ///< or ChannelSource::every_input
    std::int64_t source, output, count;
  };
  struct Maps {
    bool mixes = false, pools = false, has_rows = false;
    std::int64_t groups = 1;
    std::vector<Run> runs;                        ///< where channels are passed on
    Windows channels;                             ///< where each reads its neighbours, or its group
    std::vector<std::array<Windows, 2>> windows;  ///< by input: rows, columns
  };
  static std::array<std::int64_t, 3> sizes(const Shape& shape);
  Box box_of(const Shape& shape) const;
  static std::vector<Run> runs_of(const std::vector<ChannelSource>& sources);
  /// Channels of the output that these of input k become.
  static IndexSet passed_on(const std::vector<Run>& runs, std::size_t k, const IndexSet& sources);
  /// Channels of input k that these of the output are.
  static IndexSet taken_from(const std::vector<Run>& runs, std::size_t k, const IndexSet& outputs);
  /// Of a convolution; 0: it is none.
  static std::int64_t groups_of(const Layer& layer);
  /// @param windows of an input along an axis
  static IndexSet along(const Windows& windows, const IndexSet& outputs);
  static IndexSet back_along(const Windows& windows, const IndexSet& inputs);

  const TrainingGraph& graph_;
  std::int64_t images_;
  std::vector<Maps> maps_;
};

}  // namespace convoy::prove
