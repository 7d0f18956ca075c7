// SPDX-License-Identifier: MIT
// Operators that move, cut and join values without computing any.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "models/onnx/onnx_import.h"

namespace convoy::inline models {
namespace {

std::size_t axis_of(const OnnxImport& import, const OnnxNode& node, std::int64_t axis, const OnnxDims& dims) {
  const auto found = axes_of({axis}, dims.size());
  if (!found) import.fail(node, fmt::format("axis {} of [{}]", axis, fmt::join(dims, ", ")));
  return found->front();
}

/// The axis of an image's shape that is this axis of the whole tensor.
std::int64_t image_axis(const OnnxImport& import, const OnnxNode& node, std::size_t axis,
                        const OnnxDims& dims) {
  if (dims.size() > 1 && dims[0] == import.batch()) {
    if (axis == 0) import.fail(node, "cuts or joins the images of a batch");
    return static_cast<std::int64_t>(axis) - 1;
  }
  if (import.batch() != 1) import.fail(node, "its input has the batch at another place than first");
  return static_cast<std::int64_t>(axis);
}

/// Reshape, transpose {1, 0, 2, 3} and reshape back of [channels, h, w]: a channel shuffle. The two layers
/// before stay for whoever else reads them.
bool channel_shuffle(OnnxImport& import, const OnnxNode& node, const OnnxValue& in, const OnnxDims& dims) {
  const std::vector<Layer>& layers = import.model().layers;
  if (in.layer < 0) return false;
  const Layer& turn = layers[static_cast<std::size_t>(in.layer)];
  const auto* turned = std::get_if<Transpose>(&turn.kind);
  if (!turned || turned->axes != std::vector<std::int64_t>{1, 0, 2, 3} || turn.inputs[0] < 0) return false;
  const Layer& apart = layers[static_cast<std::size_t>(turn.inputs[0])];
  if (!std::holds_alternative<Reshape>(apart.kind)) return false;
  const LayerIndex from = apart.inputs[0];
  const Shape shape = import.model().shape_of(from);
  if (shape.size() != 3 || import.per_image(node, dims) != shape || apart.output[2] != shape[1]) return false;
  OnnxValue out = import.output_of(import.emit(node, ChannelShuffle{apart.output[0]}, {from}));
  out.dims = dims;
  import.define(node, 0, std::move(out));
  return true;
}

void reshape_to(OnnxImport& import, const OnnxNode& node, const OnnxDims& dims) {
  OnnxValue in = import.result(node, 0);
  if (in.permuted && channel_shuffle(import, node, in, dims)) return;
  if (in.permuted) {  // values must first be put in order
    Elementwise copy;
    copy.keeps_inputs = false;
    in.layer = import.emit(node, copy, {in.layer}, {}, ".copy");
    in.permuted = false;
  }
  import.define(node, 0, import.view(node, in, dims));
}

void reshape(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const OnnxValue& to = import.value(node, 1);
  if (!to.values) import.fail(node, "the shape it makes is not known before the network runs");
  const auto dims = reshaped(in.dims, *to.values, node.number_or("allowzero", 0) != 0);
  if (!dims)
    import.fail(node, fmt::format("[{}] cannot be reshaped to [{}]", fmt::join(in.dims, ", "),
                                  fmt::join(*to.values, ", ")));
  reshape_to(import, node, *dims);
}

void flatten(OnnxImport& import, const OnnxNode& node) {
  const OnnxDims& dims = import.result(node, 0).dims;
  const std::int64_t given = to_integer(node.number_or("axis", 1));
  const auto rank = static_cast<std::int64_t>(dims.size());
  if (given < -rank || given > rank)
    import.fail(node, fmt::format("axis {} of [{}]", given, fmt::join(dims, ", ")));
  const auto middle = dims.begin() + (given < 0 ? given + rank : given);
  const auto product = [](auto first, auto last) {
    return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
  };
  reshape_to(import, node, {product(dims.begin(), middle), product(middle, dims.end())});
}

void squeeze(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  const std::vector<std::int64_t> given = import.integers(node, "axes", 1);
  const bool in_again = node.op == "Unsqueeze";
  const auto axes = axes_of(given, in.dims.size() + (in_again ? given.size() : 0));
  if (!axes)
    import.fail(node, fmt::format("axes [{}] of [{}]", fmt::join(given, ", "), fmt::join(in.dims, ", ")));
  OnnxDims dims = in.dims;
  if (in_again) {
    for (const std::size_t axis : *axes) dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  } else if (given.empty() && !dims.empty()) {
    dims.erase(std::remove(dims.begin() + 1, dims.end(), 1), dims.end());
  } else {
    for (auto axis = axes->rbegin(); axis != axes->rend(); ++axis) {
      if (dims[*axis] != 1)
        import.fail(node, fmt::format("axis {} of [{}] is not 1", *axis, fmt::join(in.dims, ", ")));
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(*axis));
    }
  }
  import.define(node, 0, import.view(node, in, dims));
}

void transpose(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue& in = import.result(node, 0);
  std::vector<std::int64_t> order = node.integers("perm");
  if (order.empty())
    for (std::size_t i = in.dims.size(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  if (order.empty() || order.size() != in.dims.size() || !axes_of(order, in.dims.size()))
    import.fail(node, fmt::format("perm [{}] of [{}]", fmt::join(order, ", "), fmt::join(in.dims, ", ")));
  OnnxDims dims;
  for (const std::int64_t axis : order) dims.push_back(in.dims[axis_of(import, node, axis, in.dims)]);
  const Shape shape = import.per_image(node, dims);
  OnnxValue out = in;
  const std::size_t rank = order.size();
  if (order[0] == 0 && in.dims[0] == import.batch() && shape.size() + 1 == rank) {
    Transpose turn;
    for (std::size_t i = 1; i < rank; ++i)
      turn.axes.push_back(static_cast<std::int64_t>(axis_of(import, node, order[i], in.dims)) - 1);
    out.layer = import.emit(node, turn, {in.layer});
    out.dims = dims;
  } else {
    out = import.view(node, in, dims);
  }
  out.permuted = true;
  import.define(node, 0, std::move(out));
}

void concat(OnnxImport& import, const OnnxNode& node) {
  OnnxDims dims = import.value(node, 0).dims;
  const std::size_t axis = axis_of(import, node, to_integer(node.number_or("axis", 1)), dims);
  bool all_results = true;
  dims[axis] = 0;
  std::vector<LayerIndex> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& input = import.value(node, i);
    OnnxDims same = input.dims;
    if (same.size() != dims.size())
      import.fail(
          node, fmt::format("[{}] and [{}] cannot be joined", fmt::join(dims, ", "), fmt::join(same, ", ")));
    same[axis] = dims[axis];
    dims[axis] += input.dims[axis];
    if (same !=
            [&] {
              OnnxDims rest = dims;
              rest[axis] = same[axis];
              return rest;
            }() ||
        !count_of(dims))
      import.fail(node, fmt::format("inputs differ along other axes than {}", axis));
    all_results = all_results && input.is_result();
    inputs.push_back(input.layer);
  }
  if (node.inputs.size() == 1) return import.define(node, 0, import.result(node, 0));
  if (!all_results) return import.elementwise(node, dims, false);
  const Concat kind{image_axis(import, node, axis, dims)};
  OnnxValue out = import.output_of(import.emit(node, kind, std::move(inputs)));
  out.dims = dims;
  import.define(node, 0, std::move(out));
}

/// Indices first, first + step, ... below last along one axis of `in`.
OnnxValue cut(OnnxImport& import, const OnnxNode& node, const OnnxValue& in, std::size_t axis,
              std::int64_t first, std::int64_t last, std::int64_t step, std::string_view suffix) {
  if (first >= last) import.fail(node, "leaves nothing of its input");
  if (first == 0 && last == in.dims[axis] && step == 1) return in;
  OnnxValue out = in;
  out.dims[axis] = (last - first + step - 1) / step;
  out.layer = import.emit(node, Slice{first, last, image_axis(import, node, axis, in.dims), step}, {in.layer},
                          {}, suffix);
  return out;
}

void slice(OnnxImport& import, const OnnxNode& node) {
  OnnxValue out = import.result(node, 0);
  const std::vector<std::int64_t> starts = import.integers(node, "starts", 1),
                                  ends = import.integers(node, "ends", 2);
  std::vector<std::int64_t> axes = import.integers(node, "axes", 3),
                            steps = import.integers(node, "steps", 4);
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size() ||
      !axes_of(axes, out.dims.size()))
    import.fail(node, "starts, ends, axes and steps do not go together");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axis_of(import, node, axes[i], out.dims);
    const std::int64_t size = out.dims[axis];
    if (steps[i] < 1) return import.elementwise(node, out.dims, false);  // backwards: a copy
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
    };
    out = cut(import, node, out, axis, place(starts[i]), place(ends[i]), steps[i],
              i ? fmt::format(".{}", i) : "");
  }
  import.define(node, 0, std::move(out));
}

void split(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue in = import.result(node, 0);
  const std::size_t axis = axis_of(import, node, to_integer(node.number_or("axis", 0)), in.dims);
  std::vector<std::int64_t> parts = import.integers(node, "split", 1);
  const auto count = static_cast<std::int64_t>(node.outputs.size());
  if (parts.empty() && count > 0) {
    const std::int64_t each = (in.dims[axis] + count - 1) / count;  // the last may be smaller
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(std::min(each, in.dims[axis] - i * each));
  }
  if (parts.size() != node.outputs.size())
    import.fail(node, fmt::format("{} outputs in {} parts", count, parts.size()));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < 1 || parts[i] > in.dims[axis] - first)
      import.fail(node, fmt::format("[{}] cannot be split so along axis {}", fmt::join(in.dims, ", "), axis));
    import.define(node, i, cut(import, node, in, axis, first, first + parts[i], 1, fmt::format(".{}", i)));
    first += parts[i];
  }
}

void gather(OnnxImport& import, const OnnxNode& node) {
  const OnnxValue in = import.result(node, 0);
  const OnnxValue& indices = import.value(node, 1);
  const std::size_t axis = axis_of(import, node, to_integer(node.number_or("axis", 0)), in.dims);
  OnnxDims dims(in.dims.begin(), in.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), in.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, in.dims.end());
  if (!indices.values || indices.values->size() != 1 || dims.empty())
    return import.elementwise(node, dims, false);
  std::int64_t index = to_integer(indices.values->front());
  if (index < 0) index += in.dims[axis];
  if (index < 0 || index >= in.dims[axis])
    import.fail(node, fmt::format("index {} along axis {} of [{}]", index, axis, fmt::join(in.dims, ", ")));
  const OnnxValue one = cut(import, node, in, axis, index, index + 1, 1, "");
  import.define(node, 0, import.view(node, one, dims, ".squeeze"));
}

struct Converter {
  std::string_view op;
  void (*convert)(OnnxImport& import, const OnnxNode& node);
};

void same(OnnxImport& import, const OnnxNode& node) {
  import.define(node, 0, OnnxValue(import.result(node, 0)));
}

constexpr Converter converters[] = {
    {"Reshape", reshape},     {"Flatten", flatten},      {"Squeeze", squeeze}, {"Unsqueeze", squeeze},
    {"Transpose", transpose}, {"Concat", concat},        {"Slice", slice},     {"Split", split},
    {"Gather", gather},       {"Identity", same},        {"Cast", same},       {"CastLike", same},
    {"QuantizeLinear", same}, {"DequantizeLinear", same}};

}  // namespace

bool convert_onnx_view(OnnxImport& import, const OnnxNode& node) {
  for (const Converter& known : converters)
    if (known.op == node.op) return known.convert(import, node), true;
  return false;
}

}  // namespace convoy::models
