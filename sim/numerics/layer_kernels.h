// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "sim/numerics/kernels.h"

namespace convoy::inline numerics {

// Kernels by kind of layer; only sim/numerics/kernels.cpp calls them.

template <class Real>
struct ConvolutionKernels {
  static Tensor<Real> forward(const KernelCall<Real>& call);
  static Tensor<Real> data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient);
  static std::vector<std::vector<Real>> weight_gradient(const KernelCall<Real>& call,
                                                        const Tensor<Real>& gradient);
};

template <class Real>
struct LinearKernels {
  static Tensor<Real> forward(const KernelCall<Real>& call);
  static Tensor<Real> data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient);
  static std::vector<std::vector<Real>> weight_gradient(const KernelCall<Real>& call,
                                                        const Tensor<Real>& gradient);
};

/// Batch, layer and group normalization, epsilon 1e-5 (PyTorch's).
template <class Real>
struct NormalizationKernels {
  static Tensor<Real> forward(const KernelCall<Real>& call);
  static Tensor<Real> data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient);
  static std::vector<std::vector<Real>> weight_gradient(const KernelCall<Real>& call,
                                                        const Tensor<Real>& gradient);
  static void update_running(const KernelCall<Real>& call, RunningStatistics<Real>& running);
};

/// Maximum and average; the average counts padding, as PyTorch's does, save what `ceil` adds at the end.
template <class Real>
struct PoolKernels {
  static Tensor<Real> forward(const KernelCall<Real>& call);
  static Tensor<Real> data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient);
};

template <class Real>
struct ActivationKernels {
  static Tensor<Real> forward(const KernelCall<Real>& call);
  static Tensor<Real> data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient);
};

/// Layers that only move, scale or add values: dropout, flatten, reshape, concat, slice, channel shuffle, pad,
/// add, multiply, scale.
template <class Real>
struct MovingKernels {
  static Tensor<Real> forward(const KernelCall<Real>& call);
  static std::vector<Tensor<Real>> data_gradient(const KernelCall<Real>& call, const Tensor<Real>& gradient);
  static std::vector<std::vector<Real>> weight_gradient(const KernelCall<Real>& call,
                                                        const Tensor<Real>& gradient);
};

}  // namespace convoy::numerics
