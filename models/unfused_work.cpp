// SPDX-License-Identifier: MIT
#include "models/unfused_work.h"

#include <algorithm>

namespace convoy::inline models {
namespace {

bool has_bias(const Layer& layer) {
  return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                     [](const ParameterTensor& tensor) { return tensor.role == ParameterRole::bias; });
}

/// Whether TensorFlow 2 on a GPU makes one kernel of a convolution, its bias and its activation: a window of
/// more than a pixel in single precision, which ReLU alone reads (IsGpuCompatible in
/// tensorflow/core/grappler/optimizers/remapper.cc). Only graphs are rewritten so.
bool is_fused_with_relu(const Model& model, std::size_t index, Framework framework, ExecutionMode execution,
                        Precision precision) {
  const auto* conv = std::get_if<Conv2d>(&model.layers[index].kind);
  if (!conv || framework != Framework::tensorflow || execution != ExecutionMode::graph ||
      element_bytes(precision) < 4)
    return false;
  if (conv->kernel.h == 1 || conv->kernel.w == 1) return false;
  std::size_t readers = 0, relus = 0;
  for (const Layer& reader : model.layers)
    if (std::count(reader.inputs.begin(), reader.inputs.end(), static_cast<LayerIndex>(index)) > 0) {
      const auto* activation = std::get_if<Activation>(&reader.kind);
      ++readers;
      relus += activation && activation->function == Activation::Function::relu ? 1 : 0;
    }
  return readers == 1 && relus == 1;
}

/// TensorFlow's biases are operations of their own: BiasAdd reads and writes the result, BiasAddGrad reads
/// the gradient.
void add_bias_operations(LayerCosts& costs, double outputs, bool fused_forward) {
  if (!fused_forward) {
    costs.forward->aside_values += 2 * outputs;
    costs.forward->launches += 1;
  }
  if (!costs.weight_gradient) return;
  costs.weight_gradient->aside_values += outputs;
  costs.weight_gradient->launches += 1;
}

/// TensorFlow keeps filters as [height, width, inputs, outputs], and each of a convolution's kernels is given
/// a copy in cuDNN's order, or gives one back (functor::TransformFilter and ReverseTransformFilter in
/// tensorflow/core/kernels/conv_ops.cc, conv_grad_input_ops.cc and conv_grad_filter_ops.cc).
void add_filter_orders(LayerCosts& costs, double weights) {
  for (auto* cost : {&costs.forward, &costs.data_gradient, &costs.weight_gradient})
    if (*cost) (*cost)->reordered_parameters = 2 * weights;
}

/// The sum of the squares of a layer's weights as part of the loss, in operations of its own. Forward Square
/// (2 values a weight), Sum (1) and a product with its factor; backward that of the factor, the copies of the
/// sum's gradient (1), the derivative of the square (2), their product (3), and its sum with the gradient of
/// the other losses (3): tf.keras.regularizers.L2 and the gradients of these operations. Also under mixed
/// precision these values have 4 bytes, as the weights that the optimizer updates have.
constexpr double l2_bytes = 4, l2_forward_values = 3, l2_forward_kernels = 3;

void add_l2_loss(LayerCosts& costs, double weights) {
  costs.forward->aside_fixed_bytes += l2_bytes * l2_forward_values * weights;
  costs.forward->launches += l2_forward_kernels;
  if (!costs.weight_gradient) return;
  costs.weight_gradient->aside_fixed_bytes += l2_bytes * 9 * weights;
  costs.weight_gradient->launches += 5;
}

double weights_of(const Layer& layer) {
  double weights = static_cast<double>(layer.shared_elements);
  for (const ParameterTensor& tensor : layer.parameters)
    if (tensor.role == ParameterRole::weight) weights += static_cast<double>(tensor.elements);
  return weights;
}

void add_tensorflow(LayerCosts& costs, const Model& model, std::size_t index, Framework framework,
                    ExecutionMode execution, Precision precision) {
  const Layer& layer = model.layers[index];
  const bool filters =
      costs.kernel == KernelKind::convolution || costs.kernel == KernelKind::depthwise_convolution;
  if ((filters || std::holds_alternative<Linear>(layer.kind)) && has_bias(layer))
    add_bias_operations(costs, static_cast<double>(elements(layer.output)),
                        is_fused_with_relu(model, index, framework, execution, precision));
  if (costs.kernel == KernelKind::convolution) add_filter_orders(costs, weights_of(layer));
}

}  // namespace

bool has_l2_loss(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) return conv->l2_loss;
  const auto* linear = std::get_if<Linear>(&layer.kind);
  return linear && linear->l2_loss;
}

Work work_again(const Work& forward, const Layer& layer, ExecutionMode execution) {
  Work work = forward;
  if (!has_l2_loss(layer) || layer.shares() || execution == ExecutionMode::compiled) return work;
  work.aside_bytes_fixed -= l2_bytes * l2_forward_values * weights_of(layer);
  work.launches -= static_cast<float>(l2_forward_kernels);
  return work;
}

void add_unfused_work(LayerCosts& costs, const Model& model, std::size_t index, Framework framework,
                      ExecutionMode execution, Precision precision) {
  const Layer& layer = model.layers[index];
  const bool tensorflow = framework == Framework::tensorflow || framework == Framework::tensorflow1;
  // TensorFlow's automatic mixed precision has Mean and Sum on its list of operations that stay in single
  // precision (tensorflow/core/grappler/optimizers/auto_mixed_precision_lists.h): a cast reads the values and
  // writes four bytes each, which the sum reads.
  const double of_cast = tensorflow && element_bytes(precision) < 4 ? 2 * 4 : 0;
  if (std::holds_alternative<Multiply>(layer.kind)) {
    const auto values = static_cast<double>(elements(layer.output));
    for (const LayerIndex input : layer.inputs) {
      if (static_cast<double>(elements(model.shape_of(input))) == values) continue;
      // Gradient times the larger input, as large as both, is written before it is summed up: the gradient is
      // read a second time, the product written and read.
      costs.data_gradient->flops += values;
      costs.data_gradient->values += 3 * values;
      costs.data_gradient->bytes += of_cast * values;
    }
  }
  const bool is_mean =
      std::holds_alternative<AdaptiveAvgPool>(layer.kind) && elements(layer.output) == layer.output.front();
  if (is_mean && tensorflow) {
    const auto values = static_cast<double>(elements(model.shape_of(layer.inputs.front())));
    costs.forward->bytes += of_cast * values;
    // The gradient of a mean is copied to all pixels and then divided by their number (Tile and RealDiv).
    costs.data_gradient->values += 2 * values;
  }
  if (tensorflow) add_tensorflow(costs, model, index, framework, execution, precision);
  if (has_l2_loss(layer) && !layer.shares()) add_l2_loss(costs, weights_of(layer));  // once, at their owner
}

}  // namespace convoy::models
