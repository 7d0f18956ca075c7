// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "sim/numerics/tensor.h"

namespace convoy::inline numerics {

/// Mean and variance of a batch normalization's channels, as they are kept for images that are only looked
/// at: new = 0.9 old + 0.1 of the batch (PyTorch's momentum of 0.1), the variance with images - 1.
template <class Real>
struct RunningStatistics {
  std::vector<Real> mean, variance;
};

/// What a kernel of a layer works on.
template <class Real>
struct KernelCall {
  const Layer* layer = nullptr;
  std::vector<const Tensor<Real>*> inputs;             ///< as Layer::inputs
  std::vector<const std::vector<Real>*> parameters{};  ///< as Layer::parameters
  /// Of a gradient, the layer's output where it is there: what goes by it needs no values of the input, then.
  const Tensor<Real>* output = nullptr;
  /// Where given, normalization takes mean and variance from there, and dropout drops nothing.
  const RunningStatistics<Real>* running = nullptr;
  bool training = true;
  // Dropout's mask is drawn from these and the image's number, whoever has the image.
  std::uint64_t seed = 1;
  std::int64_t step = 0, first_image = 0;
  std::uint32_t index = 0;  ///< of the layer
};

/// The output of a layer.
template <class Real>
Tensor<Real> forward_kernel(const KernelCall<Real>& call);

/// The gradient of each input, by that of the output. What kernels need of the forward pass they make again
/// from the inputs.
template <class Real>
std::vector<Tensor<Real>> data_gradient_kernel(const KernelCall<Real>& call, const Tensor<Real>& gradient);

/// The gradients of the layer's parameters, summed over the images.
template <class Real>
std::vector<std::vector<Real>> weight_gradient_kernel(const KernelCall<Real>& call,
                                                      const Tensor<Real>& gradient);

/// Moves running statistics on by a batch normalization's batch. @pre the layer is one
template <class Real>
void update_running(const KernelCall<Real>& call, RunningStatistics<Real>& running);

/// Softmax cross entropy, summed over the images. @param labels classes of the images
template <class Real>
double cross_entropy(const Tensor<Real>& output, const std::vector<std::int32_t>& labels);
/// Its gradient times `scale`.
template <class Real>
Tensor<Real> cross_entropy_gradient(const Tensor<Real>& output, const std::vector<std::int32_t>& labels,
                                    double scale);

/// Products of matrices are cut into blocks by the sizes of a processor's caches, and sums are rounded by the
/// blocks: makes them the same on every machine.
void fix_blocks_of_products();

/// Why the network cannot learn here, in words that follow "numerics: "; "" if it can: a layer without a
/// kernel, or a network without cross entropy.
std::string refuses_numerics(const Model& model);

}  // namespace convoy::numerics
