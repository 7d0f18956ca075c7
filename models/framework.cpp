// SPDX-License-Identifier: MIT
#include "models/framework.h"

#include <array>
#include <cstddef>

namespace convoy::inline models {

const FrameworkMemory& framework_memory(Framework framework) {
  constexpr double mib = 1024 * 1024;
  static constexpr std::array<FrameworkMemory, framework_count> table{{
      // "~300MB", since CUDA 11.7 loads kernels when they are first used: github:pytorch/pytorch#107667,
      // comment of 2023-08-28. zero_grad drops gradients (set_to_none, since 2.0), so none is added to.
      {300 * mib, 0, false, true, false},
      // 1,008.2 MiB on a Titan V with PyTorch 1.3, of which 0.9 before it and 2.0 of tensors:
      // github:pytorch/pytorch#28394. zero_grad keeps gradients, to which autograd's AccumulateGrad adds.
      {1005 * mib, 0, true, true, false},
      // No figure was found for TensorFlow, PaddlePaddle and Caffe2. A context whose libraries are loaded
      // when first used stands for them: 481 MiB on an A100
      // (github:stas00/ml-engineering@744d01e1:training/performance/README.md).
      {481 * mib, 0, false, true, false},
      {481 * mib, 0, false, true, false},
      // Fitted to mxnet-finetuner's ResNet-50 (results/published/memory.yaml). The key-value store, which
      // runs the updates, has weights of its own (src/kvstore/kvstore_local.h).
      {350 * mib, 1, false, false, true},
      {350 * mib, 1, false, false, true},
      {481 * mib, 0, false, true, false},
      // Caffe's context: as of a process that holds CUDA's driver alone, 319 MiB on a Titan V
      // (github:pytorch/pytorch#28394).
      {319 * mib, 0, false, false, true},
      {481 * mib, 0, false, true, false},
      // Torch7's context: as Caffe's. A layer's accGradParameters adds to the gradient in its product.
      {319 * mib, 0, false, true, false},
  }};
  return table[static_cast<std::size_t>(framework)];
}

ExecutionMode default_execution(Framework framework) {
  switch (framework) {
    case Framework::pytorch:
    case Framework::pytorch1:
    case Framework::torch7:
      return ExecutionMode::eager;
    default:
      return ExecutionMode::graph;
  }
}

Layout default_layout(Framework framework, Precision precision) {
  const bool tensorflow = framework == Framework::tensorflow || framework == Framework::tensorflow1;
  return tensorflow && element_bytes(precision) == 2 ? Layout::nhwc : Layout::nchw;
}

Precision default_precision(Framework framework, bool devices_have_tf32) {
  const bool older =
      framework == Framework::caffe || framework == Framework::caffe2 || framework == Framework::torch7;
  return devices_have_tf32 && !older ? Precision::tf32 : Precision::fp32;
}

}  // namespace convoy::models
