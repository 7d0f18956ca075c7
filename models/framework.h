// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace convoy {

/// The program that trains. What it keeps of a layer is in memory_rules.h, the rest of its memory here.
enum class Framework : std::uint8_t {
  pytorch,   ///< PyTorch 2 with CUDA 11.7 or later
  pytorch1,  ///< PyTorch 1 with earlier CUDA
  mxnet,     ///< MXNet to 1.2, symbolic, with a key-value store on the device
};

struct FrameworkMemory {
  double reserved_bytes;  ///< of a GPU: CUDA context, kernels of libraries
  int copies_of_weights;  ///< kept beside the weights that the network runs with
  bool gradients_aside;   ///< a parameter's gradient is made in a buffer of its own and then added up
  bool winograd;          ///< fp32 convolutions of 3x3 with many channels take Winograd's workspace
  bool static_plan;       ///< buffers are laid out before training (static_plan.h)
};
/// Sources stand at the figures.
const FrameworkMemory& framework_memory(Framework framework);

}  // namespace convoy
