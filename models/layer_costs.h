// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "models/framework.h"
#include "models/model.h"
#include "models/work.h"

namespace convoy::inline models {

/// What one kernel computes and moves, whatever the batch and precision. Traffic: every input read once,
/// every output written once.
struct KernelCost {
  double flops = 0;       ///< an image
  double values = 0;      ///< activation values read and written, an image: element_bytes(precision) each
  double parameters = 0;  ///< parameter values read or written, once a kernel: element_bytes(precision) each
  double bytes = 0;       ///< an image, of any precision: masks, indices, what a custom layer states
  double seconds = 0;     ///< an image, where measured: instead of all else
  double aside_values = 0;  ///< an image, that elementwise kernels around a product read and write
  double aside_bytes = 0;   ///< the same, of any precision
  double aside_fixed_bytes = 0;     ///< that such kernels read and write once a kernel, of any precision
  double reordered_parameters = 0;  ///< the same of kernels that put a filter in another order
  double launches = 1;              ///< kernels that the framework issues for it
};

/// The kernels of a layer; one that is absent does not run and costs nothing (views, layers without
/// parameters).
struct LayerCosts {
  KernelKind kernel = KernelKind::elementwise;
  std::optional<KernelCost> forward, data_gradient, weight_gradient;
};

/// Costs of layer `index` of a model, as eager PyTorch runs it: convolutions and linear layers do 2 FLOPs a
/// multiply-add in each of forward, data gradient and weight gradient (a bias goes along for nothing); what
/// the other kinds do a value stands in layer_costs.cpp. Data gradients are for all inputs together. The
/// framework decides whether attention is one kernel.
LayerCosts layer_costs(const Model& model, std::size_t index, Framework framework = Framework::pytorch);

/// Work of one of a layer's kernels, with the geometry of convolutions and linear layers.
Work layer_work(const Model& model, std::size_t index, KernelKind kernel, const KernelCost& cost, Phase phase,
                Precision precision);

/// The optimizer's step on a layer's parameters: gradient, state and weights read, state and weights written.
/// Under fp16 and bf16 on the fp32 master copy, with the 2-byte weights written besides.
Work update_work(const Layer& layer, Precision precision, Optimizer optimizer);

}  // namespace convoy::models
