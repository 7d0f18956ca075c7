// SPDX-License-Identifier: MIT
#include "models/framework.h"

#include <array>
#include <cstddef>

namespace convoy {

const FrameworkMemory& framework_memory(Framework framework) {
  constexpr double mib = 1024 * 1024;
  static constexpr std::array<FrameworkMemory, 3> table{{
      // "~300MB", since CUDA 11.7 loads kernels when they are first used: github:pytorch/pytorch#107667,
      // comment of 2023-08-28. zero_grad drops gradients (set_to_none, since 2.0), so none is added to.
      {300 * mib, 0, false, true, false},
      // 1,008.2 MiB on a Titan V with PyTorch 1.3, of which 0.9 before it and 2.0 of tensors:
      // github:pytorch/pytorch#28394. zero_grad keeps gradients, to which autograd's AccumulateGrad adds.
      {1005 * mib, 0, true, true, false},
      // Fitted to mxnet-finetuner's ResNet-50 (results/published/memory.yaml). The key-value store, which
      // runs the updates, has weights of its own (src/kvstore/kvstore_local.h).
      {350 * mib, 1, false, false, true},
  }};
  return table[static_cast<std::size_t>(framework)];
}

}  // namespace convoy
