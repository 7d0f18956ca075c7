// SPDX-License-Identifier: MIT
#include "models/optimizer_update.h"

#include <algorithm>

namespace convoy::inline models {
namespace {

/// An elementwise operation of a step.
struct UpdateStep {
  int operands;  ///< lists of tensors that it takes
  int passes;    ///< of these, read and written
};
using UpdateSteps = std::span<const UpdateStep>;

/// What a framework runs: the step of each optimizer (sgd, momentum, adam), without weight decay, and what it
/// does with the gradients of each tensor besides.
struct UpdateRules {
  std::array<UpdateSteps, 3> steps;
  UpdateSteps gradients;
  std::span<const UpdateMode> modes;  ///< its default first
};

// PyTorch, torch/optim/sgd.py and adam.py: p += g; m *= c, m += g, p += m; and for Adam
// lerp_(m, g), v *= c, addcmul_(v, g, g), sqrt(v), two operations on that in place, addcdiv_(p, m, ...).
constexpr std::array<UpdateStep, 1> add_gradient{{{2, 3}}};
constexpr std::array<UpdateStep, 3> torch_momentum{{{1, 2}, {2, 3}, {2, 3}}};
constexpr std::array<UpdateStep, 7> torch_adam{{{2, 3}, {1, 2}, {3, 3}, {2, 2}, {1, 2}, {1, 2}, {3, 4}}};
// PyTorch 1 and Torch7 (optim/adam.lua): m *= c, m += g instead of lerp_.
constexpr std::array<UpdateStep, 8> torch1_adam{
    {{1, 2}, {2, 3}, {1, 2}, {3, 3}, {2, 2}, {1, 2}, {1, 2}, {3, 4}}};
// Until PyTorch 2.0 zero_grad() filled gradients with zeros, to which backward added (framework.cpp).
constexpr std::array<UpdateStep, 2> zeroed_and_added{{{1, 1}, {2, 3}}};
constexpr std::array<UpdateStep, 1> zeroed{{{1, 1}}};
// TensorFlow, core/kernels/training_ops_gpu.cu.cc: ApplyMomentum and ApplyKerasMomentum are two expressions
// of Eigen, a kernel each (a = c a + g; p -= r a). ApplyAdam is one kernel since 2.3, and three expressions
// in 1.15 (m, v, p).
constexpr std::array<UpdateStep, 2> tensorflow_momentum{{{2, 3}, {2, 3}}};
constexpr std::array<UpdateStep, 3> tensorflow1_adam{{{2, 3}, {2, 3}, {3, 4}}};
// One kernel a tensor that touches each value once: MXNet's sgd_mom_update and adam_update
// (src/operator/optimizer_op-inl.h), PaddlePaddle's momentum and adam.
constexpr std::array<UpdateStep, 1> momentum_once{{{3, 5}}};
constexpr std::array<UpdateStep, 1> adam_once{{{4, 7}}};
// Caffe, solvers/sgd_solver.cpp and adam_solver.cpp: a kernel makes the step of gradient and states and
// writes it over the gradient (plain SGD is momentum of 0), Net::Update adds it to the parameter, and
// ClearParamDiffs fills gradients with zeros.
constexpr std::array<UpdateStep, 2> caffe_momentum{{{2, 4}, {2, 3}}};
constexpr std::array<UpdateStep, 2> caffe_adam{{{3, 6}, {2, 3}}};
// Caffe2, sgd/momentum_sgd_op_gpu.cu: one kernel, which writes the step over the gradient too.
constexpr std::array<UpdateStep, 1> caffe2_momentum{{{3, 6}}};

// foreach is the default on GPUs since 2.0; `fused` came with 2.0 (Adam) and 2.4 (SGD).
constexpr std::array all_modes{UpdateMode::foreach, UpdateMode::fused, UpdateMode::per_tensor};
// foreach: torch.optim._multi_tensor; fused: Apex.
constexpr std::array tensor_first{UpdateMode::per_tensor, UpdateMode::foreach, UpdateMode::fused};
constexpr std::array per_tensor_only{UpdateMode::per_tensor};
// MXNet 1.5: multi_sgd_mom_update of MXNET_OPTIMIZER_AGGREGATION_SIZE tensors.
constexpr std::array aggregated{UpdateMode::fused, UpdateMode::per_tensor};
// optim.sgd and optim.adam work on all parameters as one tensor (getParameters).
constexpr std::array flat{UpdateMode::foreach};

UpdateRules rules_of(Framework framework) {
  switch (framework) {
    case Framework::pytorch:
      return {{add_gradient, torch_momentum, torch_adam}, {}, all_modes};
    case Framework::pytorch1:
      return {{add_gradient, torch_momentum, torch1_adam}, zeroed_and_added, tensor_first};
    case Framework::tensorflow:
      return {{add_gradient, tensorflow_momentum, adam_once}, {}, per_tensor_only};
    case Framework::tensorflow1:
      return {{add_gradient, tensorflow_momentum, tensorflow1_adam}, {}, per_tensor_only};
    case Framework::mxnet:
      return {{add_gradient, momentum_once, adam_once}, {}, aggregated};
    case Framework::mxnet1:
    case Framework::paddle:
      return {{add_gradient, momentum_once, adam_once}, {}, per_tensor_only};
    case Framework::caffe:
      return {{caffe_momentum, caffe_momentum, caffe_adam}, zeroed, per_tensor_only};
    case Framework::caffe2:
      return {{add_gradient, caffe2_momentum, adam_once}, {}, per_tensor_only};
    case Framework::torch7:
      break;
  }
  return {{add_gradient, torch_momentum, torch1_adam}, zeroed, flat};
}

UpdateSteps steps_of(const UpdateRules& rules, Optimizer optimizer) {
  return rules.steps[static_cast<std::size_t>(optimizer)];
}

double passes_of(UpdateSteps steps) {
  double passes = 0;
  for (const UpdateStep& step : steps) passes += step.passes;
  return passes;
}

/// Kernels of PyTorch's and Apex' multi_tensor_apply: a block takes a chunk of 65,536 values, a kernel up to
/// 320 blocks and as many tensors as the addresses of its operands leave room for among 4 KB of arguments
/// (aten/src/ATen/native/cuda/MultiTensorApply.cuh: kChunkSize, depth_to_max_blocks, depth_to_max_tensors).
double multi_tensor_launches(std::span<const std::int64_t> tensors, int operands) {
  constexpr std::int64_t chunk = 65'536, most_blocks = 320;
  constexpr std::array<std::int64_t, 4> most_tensors{110, 64, 48, 36};
  double launches = 0;
  std::int64_t blocks = 0, taken = 0;  // of the kernel that is being filled
  for (const std::int64_t size : tensors) {
    ++taken;
    for (std::int64_t left = (size + chunk - 1) / chunk; left > 0;) {
      const std::int64_t more = std::min(left, most_blocks - blocks);
      left -= more;
      blocks += more;
      if (blocks < most_blocks) continue;
      ++launches;
      blocks = 0;
      taken = left > 0 ? 1 : 0;
    }
    if (taken < most_tensors[static_cast<std::size_t>(operands - 1)]) continue;
    launches += blocks > 0 ? 1 : 0;
    blocks = taken = 0;
  }
  return launches + (blocks > 0 ? 1 : 0);
}

/// Kernels of an operation over many tensors.
double many_tensor_launches(Framework framework, std::span<const std::int64_t> tensors, int operands) {
  constexpr std::size_t aggregation_size = 4;  // MXNET_OPTIMIZER_AGGREGATION_SIZE's default
  if (framework == Framework::torch7) return 1;
  if (is_mxnet(framework))
    return static_cast<double>((tensors.size() + aggregation_size - 1) / aggregation_size);
  return multi_tensor_launches(tensors, operands);
}

}  // namespace

std::span<const UpdateMode> update_modes(Framework framework) { return rules_of(framework).modes; }

double fused_passes(Optimizer optimizer) {
  static constexpr std::array<double, 3> passes{3, 5, 7};
  return passes[static_cast<std::size_t>(optimizer)];
}

UpdateKernels update_kernels(Framework framework, UpdateMode mode, Optimizer optimizer,
                             std::span<const std::int64_t> tensors) {
  const UpdateRules rules = rules_of(framework);
  const UpdateSteps steps = steps_of(rules, optimizer);
  const auto count = static_cast<double>(tensors.size());
  const double of_gradients = static_cast<double>(rules.gradients.size());
  // Torch7's gradients are one tensor as well.
  UpdateKernels kernels{framework == Framework::torch7 ? of_gradients : of_gradients * count,
                        passes_of(rules.gradients)};
  if (mode == UpdateMode::fused) {
    const int operands = 2 + static_cast<int>(optimizer);  // parameters, gradients, states
    kernels.launches += many_tensor_launches(framework, tensors, operands);
    kernels.passes += fused_passes(optimizer);
    return kernels;
  }
  for (const UpdateStep& step : steps)
    kernels.launches +=
        mode == UpdateMode::per_tensor ? count : many_tensor_launches(framework, tensors, step.operands);
  kernels.passes += passes_of(steps);
  return kernels;
}

double update_issue_share(Framework framework, UpdateMode mode, Optimizer optimizer) {
  const UpdateRules rules = rules_of(framework);
  const auto visits = [&](UpdateMode of) {
    const double of_step =
        of == UpdateMode::per_tensor ? static_cast<double>(steps_of(rules, optimizer).size()) : 1;
    return of_step + static_cast<double>(rules.gradients.size());
  };
  return std::min(1.0, visits(mode) / visits(rules.modes.front()));
}

}  // namespace convoy::models
