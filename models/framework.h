// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/precision.h"

namespace convoy::inline models {

/// The program that trains. What it keeps of a layer is in memory_rules.h, the rest of its memory here; what
/// its kernels and their issue cost stands in the parameters of the cost model (sim/costs).
enum class Framework : std::uint8_t {
  pytorch,      ///< PyTorch 2 with CUDA 11.7 or later
  pytorch1,     ///< PyTorch 1 with earlier CUDA
  tensorflow,   ///< TensorFlow 2
  tensorflow1,  ///< TensorFlow 1, one process a host
  mxnet,        ///< MXNet 1.5 or later, symbolic: one kernel updates many parameters
  mxnet1,       ///< earlier MXNet, symbolic, with a key-value store on the device: an update a parameter
  paddle,       ///< PaddlePaddle 2
  caffe,        ///< Caffe and its forks
  caffe2,
  torch7,  ///< its nn, with cuDNN on GPUs and BLAS on CPUs
};
inline constexpr std::size_t framework_count = 10;
inline constexpr std::array<std::string_view, framework_count> framework_names{
    "pytorch", "pytorch1", "tensorflow", "tensorflow1", "mxnet",
    "mxnet1",  "paddle",   "caffe",      "caffe2",      "torch7"};

/// How a step's kernels come to be: issued one by one by the program, from a graph prepared once, or from a
/// graph whose chains of elementwise operations are one kernel each (XLA, torch.compile).
enum class ExecutionMode : std::uint8_t { eager, graph, compiled };
inline constexpr std::array<std::string_view, 3> execution_names{"eager", "graph", "compiled"};

/// Order of an activation's values in memory: channels before pixels, or last.
enum class Layout : std::uint8_t { nchw, nhwc };
inline constexpr std::array<std::string_view, 2> layout_names{"nchw", "nhwc"};

constexpr std::string_view to_string(Framework f) { return framework_names[static_cast<std::size_t>(f)]; }
constexpr bool is_mxnet(Framework f) { return f == Framework::mxnet || f == Framework::mxnet1; }
constexpr std::string_view to_string(ExecutionMode e) { return execution_names[static_cast<std::size_t>(e)]; }
constexpr std::string_view to_string(Layout l) { return layout_names[static_cast<std::size_t>(l)]; }

/// What a framework does unless told otherwise.
ExecutionMode default_execution(Framework framework);
/// TensorFlow turns mixed-precision graphs to NHWC (its layout optimizer); the others keep NCHW.
Layout default_layout(Framework framework, Precision precision);
/// Of "fp32" code on devices that have TF32: convolutions run in it, but in Caffe and Torch7, which are
/// older.
Precision default_precision(Framework framework, bool devices_have_tf32);

struct FrameworkMemory {
  double reserved_bytes;  ///< of a GPU: CUDA context, kernels of libraries
  int copies_of_weights;  ///< kept beside the weights that the network runs with
  bool gradients_aside;   ///< a parameter's gradient is made in a buffer of its own and then added up
  bool winograd;          ///< fp32 convolutions of 3x3 with many channels take Winograd's workspace
  bool static_plan;       ///< buffers are laid out before training (static_plan.h)
};
/// Sources stand at the figures.
const FrameworkMemory& framework_memory(Framework framework);

}  // namespace convoy::models
