// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "models/training_graph.h"

namespace convoy::inline models {

/// What a forward operation does to storages: all that it takes to see where a forward pass can be cut.
struct ForwardPass {
  const std::vector<Operation>& operations;  ///< forward ones only
  const std::vector<Buffer>& buffers;        ///< `born` and `dies` in the forward pass
  std::vector<char> is_image;                ///< by buffer: holds the image, which is there at any time
  std::vector<std::uint32_t> overwrites;     ///< by operation: the buffer it overwrites, or no_buffer
  static constexpr std::uint32_t no_buffer = 0xffffffff;
};

/// The operations, but the first, that begin a segment of recomputation; ascending.
///
/// A forward pass can be cut where of all tensors but the image one at most is still to be read, and no later
/// operation overwrites it: that tensor is all that is kept of what came before.
///   blocks: cuts where branches have come together again (the end of a residual, inception or squeeze and
///     excitation block) and after pooling.
///   sqrt: of n operations, about sqrt(n) segments that make equally many bytes (Chen et al.,
///     arXiv:1604.06174, section 4.1), as far as the network can be cut there.
std::vector<OpId> segment_begins(const ForwardPass& pass, Recomputation how);

}  // namespace convoy::models
