// SPDX-License-Identifier: MIT
// Operators with kernels of their own: convolutions, products of matrices, pooling, normalization,
// activations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {
namespace {

constexpr std::int64_t max_extent = 1'000'000'000;  // of a side of a kernel, a stride, a padding

/// Height and width of an attribute with one number an axis.
Size2 size2(const OnnxImport& import, const OnnxNode& node, std::string_view attribute,
            std::int64_t fallback) {
  const std::vector<std::int64_t> given = node.integers(attribute);
  if (given.empty()) return {fallback, fallback};
  if (given.size() != 2)
    import.fail(node, fmt::format("'{}' has {} numbers; only convolutions and pooling of images are read",
                                  attribute, given.size()));
  for (const std::int64_t number : given)
    if (number < (fallback == 0 ? 0 : 1) || number > max_extent)
      import.fail(node, fmt::format("'{}' cannot be {}", attribute, number));
  return {given[0], given[1]};
}

struct Window {
  Size2 kernel, stride, dilation, begin{0, 0}, end{0, 0};
};

void set_padding(const OnnxImport& import, const OnnxNode& node, const OnnxDims& in, Window& window) {
  const std::string_view automatic = node.text_or("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    const auto side = [&](std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t& begin, std::int64_t& end) {
      const std::int64_t out = (size + stride - 1) / stride;
      const std::int64_t total =
          std::max<std::int64_t>(0, (out - 1) * stride + dilation * (kernel - 1) + 1 - size);
      begin = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    };
    side(in[2], window.kernel.h, window.stride.h, window.dilation.h, window.begin.h, window.end.h);
    side(in[3], window.kernel.w, window.stride.w, window.dilation.w, window.begin.w, window.end.w);
    return;
  }
  const std::vector<std::int64_t> pads = node.integers("pads");
  if (pads.empty()) return;
  if (pads.size() != 4) import.fail(node, fmt::format("'pads' has {} numbers, not 4", pads.size()));
  for (const std::int64_t pad : pads)
    if (pad < 0 || pad > max_extent) import.fail(node, fmt::format("'pads' cannot have {}", pad));
  window.begin = {pads[0], pads[1]};
  window.end = {pads[2], pads[3]};
}

Window read_window(const OnnxImport& import, const OnnxNode& node, const OnnxDims& in, Size2 kernel) {
  if (in.size() != 4)
    import.fail(node, fmt::format("reads [{}]; only two-dimensional convolution and pooling are read",
                                  fmt::join(in, ", ")));
  Window window;
  window.kernel = kernel;
  window.stride = size2(import, node, "strides", 1);
  window.dilation = size2(import, node, "dilations", 1);
  set_padding(import, node, in, window);
  return window;
}

/// A layer of zeros around the input where padding is not the same on both sides.
LayerIndex pad_first(OnnxImport& import, const OnnxNode& node, LayerIndex input, Window& window) {
  if (window.begin == window.end) return input;
  const Pad pad{window.begin.h, window.begin.w, window.end.h, window.end.w};
  window.begin = window.end = {0, 0};
  return import.emit(node, pad, {input}, {}, ".pad");
}

std::vector<const OnnxValue*> weights_from(const OnnxImport& import, const OnnxNode& node, std::size_t first,
                                           std::size_t count) {
  std::vector<const OnnxValue*> weights;
  for (std::size_t i = first; i < first + count; ++i)
    if (import.find(node, i)) weights.push_back(&import.weight(node, i));
  return weights;
}

void finish(OnnxImport& import, const OnnxNode& node, LayerIndex layer) {
  import.define(node, 0, import.output_of(layer));
}

void convolution(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const OnnxDims& weight = import.weight(node, 1).dims;
  if (weight.size() != 4 || count_of(weight).value_or(0) == 0 || weight[2] > max_extent ||
      weight[3] > max_extent)
    import.fail(node, fmt::format("its weights are [{}]; only two-dimensional convolutions are read",
                                  fmt::join(weight, ", ")));
  Window window = read_window(import, node, in.dims, {weight[2], weight[3]});
  const std::int64_t groups = to_integer(node.number_or("group", 1));
  const bool transposed = node.op == "ConvTranspose";
  const bool restore = import.lost_batch_norm(node);
  const bool bias = !restore && import.find(node, 2) != nullptr;
  if (groups < 1 || groups > weight[0] || in.dims[1] != (transposed ? weight[0] : weight[1] * groups))
    import.fail(node, fmt::format("weights [{}] in {} groups do not fit an input [{}]",
                                  fmt::join(weight, ", "), groups, fmt::join(in.dims, ", ")));
  const std::vector<const OnnxValue*> weights = weights_from(import, node, 1, bias ? 2 : 1);
  if (!transposed) {
    const LayerIndex from = pad_first(import, node, in.layer, window);
    Conv2d conv{weight[0], window.kernel, window.stride, window.begin, window.dilation, groups, bias};
    LayerIndex layer = import.emit(node, conv, {from}, weights);
    if (restore) layer = import.emit(node, Normalization{}, {layer}, {}, ".batch_norm");
    return finish(import, node, layer);
  }
  // Cut on both sides alike, and one less at the end where the sum is odd.
  ConvTranspose2d conv{weight[1] * groups, window.kernel, window.stride, {0, 0}, {0, 0}, groups, bias,
                       window.dilation};
  conv.output_padding = size2(import, node, "output_padding", 0);
  const Size2 total{window.begin.h + window.end.h, window.begin.w + window.end.w};
  conv.padding = {(total.h + 1) / 2, (total.w + 1) / 2};
  conv.output_padding.h += total.h % 2;
  conv.output_padding.w += total.w % 2;
  finish(import, node, import.emit(node, conv, {in.layer}, weights));
}

void gemm(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const OnnxDims& weight = import.weight(node, 1).dims;
  if (weight.size() != 2 || in.dims.size() != 2 || node.number_or("transA", 0) != 0)
    import.fail(node, "is no product of a batch of vectors and a matrix");
  const bool turned = node.number_or("transB", 0) != 0;
  if (weight[turned ? 1 : 0] != in.dims[1] || weight[turned ? 0 : 1] < 1)
    import.fail(node, fmt::format("weights [{}] do not fit an input [{}]", fmt::join(weight, ", "),
                                  fmt::join(in.dims, ", ")));
  const bool vectors = import.per_image(node, in.dims).size() == 1;
  Linear linear{weight[turned ? 0 : 1], import.find(node, 2) != nullptr, !vectors};
  const LayerIndex layer = import.emit(node, linear, {in.layer}, weights_from(import, node, 1, 2));
  OnnxValue out = import.output_of(layer);
  out.dims = {in.dims[0], linear.out_features};
  import.define(node, 0, std::move(out));
}

bool matmul(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue &a = import.value(node, 0), &b = import.value(node, 1);
  if (!a.is_result() || a.dims.size() < 2) return false;
  OnnxDims dims = a.dims;
  if (b.is_result()) {
    if (a.dims.size() != b.dims.size()) return false;
    dims.back() = b.dims.back();
    const LayerIndex layer = import.emit(node, MatMul{}, {a.layer, b.layer});
    OnnxValue out = import.output_of(layer);
    out.dims = dims;
    import.define(node, 0, std::move(out));
    return true;
  }
  if (b.dims.size() != 2) return false;
  if (b.dims[0] != a.dims.back() || b.dims[1] < 1)
    import.fail(node, fmt::format("weights [{}] do not fit an input [{}]", fmt::join(b.dims, ", "),
                                  fmt::join(a.dims, ", ")));
  dims.back() = b.dims[1];
  const bool vectors = import.per_image(node, a.dims).size() == 1;
  const LayerIndex layer = import.emit(node, Linear{b.dims[1], false, !vectors}, {a.layer}, {&b});
  OnnxValue out = import.output_of(layer);
  out.dims = dims;
  import.define(node, 0, std::move(out));
  return true;
}

/// PyTorch's exporter writes an average over zeros around an image as a layer of zeros and an average without
/// padding. Where nothing else reads that layer, it goes, and its zeros are the average's padding again.
/// @return what the average reads
LayerIndex take_border(OnnxImport& import, const OnnxNode& node, Window& window) {
  const OnnxValue& in = import.result(node, 0);
  std::vector<Layer>& layers = import.model().layers;
  const bool taken = in.zero_border && node.op == "AveragePool" && window.begin == Size2{0, 0} &&
                     window.end == Size2{0, 0} && in.layer + 1 == static_cast<LayerIndex>(layers.size()) &&
                     import.readers(node.inputs[0]) == 1 && !import.is_output(node.inputs[0]);
  if (!taken) return in.layer;
  const Pad border = std::get<Pad>(layers.back().kind);
  const LayerIndex from = layers.back().inputs.front();
  layers.pop_back();
  window.begin = window.end = {border.top, border.left};
  return from;
}

void pool(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  Window window = read_window(import, node, in.dims, size2(import, node, "kernel_shape", 1));
  Pool pool;
  pool.mode = node.op == "MaxPool" ? Pool::Mode::max : Pool::Mode::average;
  // A dilated window spans more, and reads as many values as another.
  pool.kernel = {window.dilation.h * (window.kernel.h - 1) + 1,
                 window.dilation.w * (window.kernel.w - 1) + 1};
  pool.stride = window.stride;
  pool.ceil = node.number_or("ceil_mode", 0) != 0;
  // Files of operator sets below 10 write "round up" as padding at the end.
  const auto rounds_up = [](std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t begin,
                            std::int64_t end) {
    const std::int64_t rest = size + 2 * begin - kernel;
    return end >= begin && rest >= 0 && (rest + (end - begin)) / stride == (rest + stride - 1) / stride;
  };
  if (window.begin != window.end &&
      rounds_up(in.dims[2], pool.kernel.h, pool.stride.h, window.begin.h, window.end.h) &&
      rounds_up(in.dims[3], pool.kernel.w, pool.stride.w, window.begin.w, window.end.w)) {
    pool.ceil = true;
    window.end = window.begin;
  }
  const LayerIndex from = pad_first(import, node, take_border(import, node, window), window);
  pool.padding = window.begin;
  finish(import, node, import.emit(node, pool, {from}));
}

void global_pool(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  if (in.dims.size() != 4) return import.unknown(node);
  if (node.op == "GlobalAveragePool")
    return finish(import, node, import.emit(node, AdaptiveAvgPool{}, {in.layer}));
  const Size2 all{in.dims[2], in.dims[3]};
  finish(import, node, import.emit(node, Pool{Pool::Mode::max, all, all}, {in.layer}));
}

/// An operator of the Python module's (python/convoy/_torch.py): ONNX has no pooling to a size that does not
/// divide the image's.
void adaptive_pool(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const std::vector<std::int64_t> size = node.integers("output_size");
  if (in.dims.size() != 4 || size.size() != 2 || std::min(size[0], size[1]) < 1 ||
      std::max(size[0], size[1]) > max_extent)
    import.fail(node, fmt::format("pools [{}] to [{}]", fmt::join(in.dims, ", "), fmt::join(size, ", ")));
  finish(import, node, import.emit(node, AdaptiveAvgPool{{size[0], size[1]}}, {in.layer}));
}

void normalization(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  Normalization norm;
  std::size_t weights = 2;
  if (node.op == "LayerNormalization") {
    const auto axis = axes_of({to_integer(node.number_or("axis", -1))}, in.dims.size());
    if (!axis || axis->front() + 1 != in.dims.size()) return import.elementwise(node, in.dims, true);
    norm = {Normalization::Over::layer, import.find(node, 1) != nullptr, true};
    if (!norm.affine) weights = 0;
  } else if (node.op == "InstanceNormalization" || node.op == "GroupNormalization") {
    const Shape shape = import.per_image(node, in.dims);
    const std::int64_t groups = to_integer(node.number_or("num_groups", static_cast<double>(shape[0])));
    if (groups < 1) import.fail(node, fmt::format("'num_groups' cannot be {}", groups));
    norm = {Normalization::Over::group, true, false, groups};
  }
  const LayerIndex layer = import.emit(node, norm, {in.layer}, weights_from(import, node, 1, weights));
  OnnxValue out = import.output_of(layer);
  out.dims = in.dims;
  import.define(node, 0, std::move(out));
}

void activation(OnnxImport& import, const OnnxNode& node, Activation::Function function) {
  const OnnxValue& in = import.result(node, 0);
  if (function == Activation::Function::softmax && import.has_loss() &&
      import.is_output(node.outputs.at(0)) && import.readers(node.outputs[0]) == 0)
    return import.define(node, 0, in);  // the loss has its own
  OnnxValue out = import.output_of(import.emit(node, Activation{function}, {in.layer}));
  out.dims = in.dims;
  import.define(node, 0, std::move(out));
}

void clip(OnnxImport& import, const OnnxNode& node) {
  const auto bound = [&](std::string_view attribute, std::size_t input) -> std::optional<double> {
    const OnnxValue* given = import.find(node, input);
    if (given)
      return given->values && given->values->size() == 1 ? std::optional(given->values->front())
                                                         : std::nullopt;
    const OnnxAttribute* written = node.find(attribute);
    return written ? written->number : std::nullopt;
  };
  if (bound("min", 1) == 0.0 && bound("max", 2) == 6.0)
    return activation(import, node, Activation::Function::relu6);
  import.elementwise(node, import.result(node, 0).dims, true);
}

void dropout(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue in = import.result(node, 0);
  double rate = node.number_or("ratio", 0.5);
  if (const OnnxValue* given = import.find(node, 1); given && given->values && given->values->size() == 1)
    rate = given->values->front();
  if (!(rate >= 0 && rate <= 1)) import.fail(node, fmt::format("its ratio cannot be {}", rate));
  OnnxValue out = import.output_of(import.emit(node, Dropout{rate}, {in.layer}));
  out.dims = in.dims;
  import.define(node, 0, std::move(out));
}

struct ActivationName {
  std::string_view op;
  Activation::Function function;
};
using enum Activation::Function;
constexpr std::array activations{
    ActivationName{"Relu", relu},           ActivationName{"LeakyRelu", leaky_relu},
    ActivationName{"HardSwish", hardswish}, ActivationName{"HardSigmoid", hardsigmoid},
    ActivationName{"Silu", silu},           ActivationName{"Gelu", gelu},
    ActivationName{"Sigmoid", sigmoid},     ActivationName{"Tanh", Activation::Function::tanh},
    ActivationName{"Softmax", softmax},     ActivationName{"LogSoftmax", softmax}};

}  // namespace

bool convert_onnx_compute(OnnxImport& import, const OnnxNode& node) {
  const std::string_view op = node.op;
  for (const ActivationName& known : activations)
    if (known.op == op && !node.outputs.empty()) return activation(import, node, known.function), true;
  if (op == "Conv" || op == "ConvTranspose") return convolution(import, node), true;
  if (op == "Gemm") return gemm(import, node), true;
  if (op == "MatMul") return matmul(import, node);
  if (op == "MaxPool" || op == "AveragePool") return pool(import, node), true;
  if (op == "AdaptiveAveragePool" && node.domain == "convoy") return adaptive_pool(import, node), true;
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool") return global_pool(import, node), true;
  if (op == "BatchNormalization" || op == "InstanceNormalization" || op == "GroupNormalization" ||
      op == "LayerNormalization")
    return normalization(import, node), true;
  if (op == "LRN") {
    const std::int64_t size = to_integer(node.number_or("size", 5));
    if (size < 1 || size > max_extent) import.fail(node, fmt::format("'size' cannot be {}", size));
    return finish(import, node, import.emit(node, LocalResponseNorm{size}, {import.result(node, 0).layer})),
           true;
  }
  if (op == "Clip") return clip(import, node), true;
  if (op == "Dropout") return dropout(import, node), true;
  return false;
}

}  // namespace convoy::models
