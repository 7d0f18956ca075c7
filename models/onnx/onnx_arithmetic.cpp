// SPDX-License-Identifier: MIT
// Operators between tensors, value by value, and sums along axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {
namespace {

OnnxDims common_dims(const OnnxImport& import, const OnnxNode& node) {
  OnnxDims dims = import.value(node, 0).dims;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const OnnxValue* input = import.find(node, i);
    if (!input) continue;
    const std::optional<OnnxDims> both = broadcast(dims, input->dims);
    if (!both)
      import.fail(node, fmt::format("[{}] and [{}] do not go together", fmt::join(dims, ", "),
                                    fmt::join(input->dims, ", ")));
    dims = *both;
  }
  return dims;
}

/// `values` a channel of `of` [batch, channels, ...]: [channels, 1, 1], or one for vectors.
bool is_per_channel(const OnnxValue& values, const OnnxValue& of) {
  if (of.dims.size() < 2 || values.count() != of.dims[1]) return false;
  const std::size_t behind = of.dims.size() - 2;
  // With as many values as channels along the channels' dimension all others are 1.
  return values.dims.size() > behind && values.dims[values.dims.size() - 1 - behind] == of.dims[1];
}

/// A constant added to the result of a convolution or linear layer without bias is its bias.
bool add_bias(OnnxImport& import, const OnnxNode& node, const OnnxValue& to, const std::string& name,
              const OnnxValue& bias) {
  if (to.layer < 0 || !bias.is_float || import.readers(name) != 1 || import.is_output(name)) return false;
  Layer& layer = import.model().layers[static_cast<std::size_t>(to.layer)];
  auto* conv = std::get_if<Conv2d>(&layer.kind);
  auto* linear = std::get_if<Linear>(&layer.kind);
  const bool fits = conv ? !conv->bias && is_per_channel(bias, to)
                    : linear
                        ? !linear->bias && !bias.dims.empty() && bias.dims.back() == linear->out_features &&
                              bias.count() == linear->out_features
                        : false;
  if (!fits || to.dims != common_dims(import, node)) return false;
  (conv ? conv->bias : linear->bias) = true;
  layer.parameters.push_back({ParameterRole::bias, bias.count()});
  import.define(node, 0, to);
  return true;
}

void binary(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue &a = import.value(node, 0), &b = import.value(node, 1);
  const OnnxDims dims = common_dims(import, node);
  const bool multiplies = node.op == "Mul", sums = node.op == "Add" || node.op == "Sub";
  if (a.is_result() && b.is_result()) {
    const auto batches = [&](const OnnxValue& value) {
      return value.dims.size() == dims.size() && dims.size() > 1 && value.dims[0] == import.batch();
    };
    if ((multiplies || node.op == "Add") && batches(a) && batches(b)) {
      LayerKind kind = multiplies ? LayerKind{Multiply{}} : LayerKind{Add{}};
      OnnxValue out = import.output_of(import.emit(node, std::move(kind), {a.layer, b.layer}));
      out.dims = dims;
      return import.define(node, 0, std::move(out));
    }
    return import.elementwise(node, dims, !sums);
  }
  const bool first = a.is_result();
  const OnnxValue &result = first ? a : b, &constant = first ? b : a;
  if (node.op == "Add" && add_bias(import, node, result, node.inputs[first ? 0 : 1], constant)) return;
  if (multiplies && constant.is_float && constant.count() > 1 && result.layer != image_input &&
      is_per_channel(constant, result) && result.dims == dims && dims[0] == import.batch()) {
    OnnxValue out = import.output_of(import.emit(node, Scale{}, {result.layer}, {&constant}));
    out.dims = dims;
    return import.define(node, 0, std::move(out));
  }
  const bool learned = constant.is_float && constant.count() > 1 && result.layer != image_input;
  import.elementwise(node, dims, !sums && (learned || !(multiplies || node.op == "Div")));
}

void several(OnnxImport& import, const OnnxNode& node) {
  const OnnxDims dims = common_dims(import, node);
  if (node.op != "Sum" || node.inputs.size() < 2) return import.elementwise(node, dims, node.op != "Mean");
  std::vector<LayerIndex> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& input = import.value(node, i);
    if (!input.is_result() || dims.empty() || input.dims.size() != dims.size() ||
        input.dims[0] != import.batch())
      return import.elementwise(node, dims, false);
    inputs.push_back(input.layer);
  }
  OnnxValue out = import.output_of(import.emit(node, Add{}, std::move(inputs)));
  out.dims = dims;
  import.define(node, 0, std::move(out));
}

void reduce(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue in = import.result(node, 0);
  const std::vector<std::int64_t> given = import.integers(node, "axes", 1);
  std::optional<std::vector<std::size_t>> axes = axes_of(given, in.dims.size());
  if (!axes)
    import.fail(node, fmt::format("axes [{}] of [{}]", fmt::join(given, ", "), fmt::join(in.dims, ", ")));
  if (axes->empty())
    for (std::size_t i = 0; i < in.dims.size(); ++i) axes->push_back(i);
  if (!axes->empty() && axes->front() == 0 && import.batch() != 1)
    import.fail(node, "mixes the images of a batch");
  OnnxDims kept, dropped;
  for (std::size_t i = 0; i < in.dims.size(); ++i) {
    const bool reduced = std::binary_search(axes->begin(), axes->end(), i);
    kept.push_back(reduced ? 1 : in.dims[i]);
    if (!reduced) dropped.push_back(in.dims[i]);
  }
  const bool keep = node.number_or("keepdims", 1) != 0;
  if (node.op == "ReduceMean" && in.dims.size() == 4 && *axes == std::vector<std::size_t>{2, 3}) {
    const OnnxValue mean = import.output_of(import.emit(node, AdaptiveAvgPool{}, {in.layer}));
    return import.define(node, 0, keep ? mean : import.view(node, mean, dropped, ".flatten"));
  }
  import.elementwise(node, keep ? kept : dropped, node.op != "ReduceMean" && node.op != "ReduceSum");
}

constexpr std::array<std::string_view, 12> binaries{"Add", "Sub",   "Mul",     "Div",  "Pow", "PRelu",
                                                    "Mod", "Equal", "Greater", "Less", "And", "Or"};
constexpr std::array<std::string_view, 28> unaries{"Abs",
                                                   "Ceil",
                                                   "Celu",
                                                   "Cos",
                                                   "Elu",
                                                   "Erf",
                                                   "Exp",
                                                   "Floor",
                                                   "Log",
                                                   "Mish",
                                                   "Neg",
                                                   "Not",
                                                   "Reciprocal",
                                                   "Round",
                                                   "Selu",
                                                   "Sign",
                                                   "Sin",
                                                   "Softplus",
                                                   "Softsign",
                                                   "Sqrt",
                                                   "Tan",
                                                   "Acos",
                                                   "Asin",
                                                   "Atan",
                                                   "Sinh",
                                                   "Cosh",
                                                   "LpNormalization",
                                                   "ThresholdedRelu"};
constexpr std::array<std::string_view, 8> reductions{"ReduceMean",      "ReduceSum", "ReduceMax",
                                                     "ReduceMin",       "ReduceL1",  "ReduceL2",
                                                     "ReduceSumSquare", "ReduceProd"};

template <std::size_t n>
bool one_of(const std::array<std::string_view, n>& names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

bool convert_onnx_arithmetic(OnnxImport& import, const OnnxNode& node) {
  if (one_of(binaries, node.op)) return binary(import, node), true;
  if (one_of(unaries, node.op))
    return import.elementwise(node, import.result(node, 0).dims, node.op != "Neg"), true;
  if (one_of(reductions, node.op)) return reduce(import, node), true;
  if (node.op == "Sum" || node.op == "Max" || node.op == "Min" || node.op == "Mean" || node.op == "Where")
    return several(import, node), true;
  return false;
}

}  // namespace convoy::models
