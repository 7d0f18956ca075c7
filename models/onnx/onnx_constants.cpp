// SPDX-License-Identifier: MIT
#include "models/onnx/onnx_constants.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

namespace convoy::inline models {
namespace {

constexpr std::int64_t max_values = OnnxTensor::max_values;

using Result = std::optional<OnnxConstant>;
using Inputs = std::vector<const OnnxConstant*>;

std::vector<std::int64_t> integers(const OnnxConstant& constant) {
  std::vector<std::int64_t> result;
  if (constant.values)
    for (const double value : *constant.values) result.push_back(to_integer(value));
  return result;
}

/// Of an attribute in old operator sets, an input in new ones. Nothing where that input's values are unknown.
std::optional<std::vector<std::int64_t>> given(const OnnxNode& node, std::string_view attribute,
                                               const Inputs& inputs, std::size_t input) {
  if (input >= inputs.size() || !inputs[input]) return node.integers(attribute);
  if (!inputs[input]->values) return std::nullopt;
  return integers(*inputs[input]);
}

double apply(std::string_view op, double a, double b, bool whole) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return b == 0 ? 0 : whole ? std::trunc(a / b) : a / b;
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Mod") return b == 0 ? 0 : a - b * std::floor(a / b);
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "Less") return a < b;
  return std::pow(a, b);
}

constexpr std::array<std::string_view, 10> foldable_binaries{"Add", "Sub", "Mul", "Div",   "Min",
                                                             "Max", "Mod", "Pow", "Equal", "Greater"};

Result fold_binary(const OnnxNode& node, const OnnxConstant& a, const OnnxConstant& b) {
  const std::optional<OnnxDims> dims = broadcast(a.dims, b.dims);
  if (!dims) return std::nullopt;
  OnnxConstant result{*dims, std::nullopt, a.is_float || b.is_float};
  // Vectors and scalars are what shapes are made of.
  if (!a.values || !b.values || dims->size() > 1 || result.count() > max_values) return result;
  std::vector<double> values(static_cast<std::size_t>(result.count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = apply(node.op, (*a.values)[a.values->size() == 1 ? 0 : i],
                      (*b.values)[b.values->size() == 1 ? 0 : i], !result.is_float);
  result.values = std::move(values);
  return result;
}

Result fold_concat(const OnnxNode& node, const Inputs& inputs) {
  OnnxConstant result = *inputs.front();
  const auto axis = axes_of({to_integer(node.number_or("axis", 0))}, result.dims.size());
  if (!axis) return std::nullopt;
  const std::size_t along = axis->front();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!inputs[i] || inputs[i]->dims.size() != result.dims.size()) return std::nullopt;
    result.dims[along] += inputs[i]->dims[along];
    if (!count_of(result.dims)) return std::nullopt;
    if (result.values && inputs[i]->values && result.dims.size() == 1 && result.count() <= max_values)
      result.values->insert(result.values->end(), inputs[i]->values->begin(), inputs[i]->values->end());
    else
      result.values.reset();
  }
  return result;
}

/// Along axis 0 of a vector, or of a matrix row by row.
Result fold_gather(const OnnxNode& node, const OnnxConstant& data, const OnnxConstant& indices) {
  const auto axis = axes_of({to_integer(node.number_or("axis", 0))}, data.dims.size());
  if (!axis) return std::nullopt;
  OnnxConstant result{{}, std::nullopt, data.is_float};
  for (std::size_t i = 0; i < data.dims.size(); ++i)
    if (i == axis->front())
      result.dims.insert(result.dims.end(), indices.dims.begin(), indices.dims.end());
    else
      result.dims.push_back(data.dims[i]);
  if (!count_of(result.dims)) return std::nullopt;
  if (!data.values || !indices.values || data.dims.size() != 1) return result;
  std::vector<double> values;
  for (std::int64_t index : integers(indices)) {
    if (index < 0) index += data.dims[0];
    if (index < 0 || index >= data.dims[0]) return std::nullopt;
    values.push_back((*data.values)[static_cast<std::size_t>(index)]);
  }
  result.values = std::move(values);
  return result;
}

/// Values of a tensor whose axes are taken in another order, or in part: `place` says for each index of the
/// result where in the data it comes from.
template <typename Place>
std::vector<double> rearranged(const OnnxConstant& data, const OnnxDims& dims, Place place) {
  std::vector<double> values(static_cast<std::size_t>(count_of(dims).value_or(0)));
  OnnxDims index(dims.size());
  for (double& value : values) {
    const OnnxDims from = place(index);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < from.size(); ++i) at = at * data.dims[i] + from[i];
    value = (*data.values)[static_cast<std::size_t>(at)];
    for (std::size_t i = index.size(); i-- > 0 && ++index[i] == dims[i];) index[i] = 0;
  }
  return values;
}

/// Along one axis: what shapes and paddings are cut with.
Result fold_slice(const OnnxNode& node, const Inputs& inputs) {
  const OnnxConstant& data = *inputs[0];
  const auto starts = given(node, "starts", inputs, 1), ends = given(node, "ends", inputs, 2);
  const auto axes = given(node, "axes", inputs, 3), steps = given(node, "steps", inputs, 4);
  if (!data.values || !starts || !ends || !axes || starts->size() != 1 || ends->size() != 1)
    return std::nullopt;
  const auto chosen = axes_of({axes->empty() ? 0 : axes->front()}, data.dims.size());
  if (!chosen) return std::nullopt;
  const std::size_t axis = chosen->front();
  const std::int64_t size = data.dims[axis], step = steps && !steps->empty() ? steps->front() : 1;
  if (step == 0) return std::nullopt;
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const std::int64_t first = place(starts->front()), last = place(ends->front());
  const std::int64_t span = step < 0 ? first - last : last - first, stride = std::abs(step);
  OnnxConstant result{data.dims, std::nullopt, data.is_float};
  result.dims[axis] = span <= 0 ? 0 : (span - 1) / stride + 1;
  result.values = rearranged(data, result.dims, [&](OnnxDims index) {
    index[axis] = first + step * index[axis];
    return index;
  });
  return result;
}

Result fold_squeeze(const OnnxNode& node, const Inputs& inputs) {
  OnnxConstant result = *inputs[0];
  const auto axes = given(node, "axes", inputs, 1);
  if (!axes) return std::nullopt;
  const auto chosen = axes_of(*axes, result.dims.size());
  if (!chosen) return std::nullopt;
  OnnxDims dims;
  for (std::size_t i = 0; i < result.dims.size(); ++i) {
    const bool out =
        axes->empty() ? result.dims[i] == 1 : std::binary_search(chosen->begin(), chosen->end(), i);
    if (!out) dims.push_back(result.dims[i]);
  }
  result.dims = dims;
  return result;
}

Result fold_unsqueeze(const OnnxNode& node, const Inputs& inputs) {
  OnnxConstant result = *inputs[0];
  const auto axes = given(node, "axes", inputs, 1);
  if (!axes) return std::nullopt;
  const auto chosen = axes_of(*axes, result.dims.size() + axes->size());
  if (!chosen) return std::nullopt;
  for (const std::size_t axis : *chosen)
    result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return result;
}

Result fold_transpose(const OnnxNode& node, const OnnxConstant& data) {
  OnnxConstant result = data;
  std::vector<std::int64_t> order = node.integers("perm");
  if (order.empty())
    for (std::size_t i = data.dims.size(); i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  if (order.size() != data.dims.size() || !axes_of(order, data.dims.size())) return std::nullopt;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0) order[i] += static_cast<std::int64_t>(order.size());
    result.dims[i] = data.dims[static_cast<std::size_t>(order[i])];
  }
  if (data.values)
    result.values = rearranged(data, result.dims, [&](const OnnxDims& index) {
      OnnxDims from(index.size());
      for (std::size_t i = 0; i < order.size(); ++i) from[static_cast<std::size_t>(order[i])] = index[i];
      return from;
    });
  return result;
}

/// ConstantOfShape, Expand and Tile of one value.
Result fold_filled(const OnnxDims& dims, std::optional<double> value, bool is_float) {
  if (!count_of(dims)) return std::nullopt;
  OnnxConstant result{dims, std::nullopt, is_float};
  if (value && result.count() <= max_values)
    result.values = std::vector<double>(static_cast<std::size_t>(result.count()), *value);
  return result;
}

Result fold_range(const OnnxConstant& start, const OnnxConstant& limit, const OnnxConstant& step) {
  if (!start.values || !limit.values || !step.values || start.count() != 1 || limit.count() != 1 ||
      step.count() != 1)
    return std::nullopt;
  const double from = start.values->front(), by = step.values->front();
  const double count = std::ceil((limit.values->front() - from) / by);
  if (!(count >= 0 && count <= static_cast<double>(max_values))) return std::nullopt;
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from + by * static_cast<double>(i);
  return OnnxConstant{{static_cast<std::int64_t>(count)}, std::move(values), start.is_float};
}

Result fold_unary(const OnnxNode& node, OnnxConstant data) {
  if (!data.values) return data;
  for (double& value : *data.values) {
    if (node.op == "Floor") value = std::floor(value);
    if (node.op == "Ceil") value = std::ceil(value);
    if (node.op == "Neg") value = -value;
    if (node.op == "Sqrt") value = std::sqrt(value);
    if (node.op == "Not") value = value == 0;
    if (node.op == "Cast" && !data.is_float) value = std::trunc(value);
  }
  return data;
}

Result fold_cast(const OnnxNode& node, OnnxConstant data) {
  const double to = node.number_or("to", 1);  // TensorProto.DataType
  data.is_float = to == 1 || to == 10 || to == 11 || to == 16;
  return fold_unary(node, std::move(data));
}

}  // namespace

std::int64_t OnnxConstant::count() const { return count_of(dims).value_or(max_onnx_count); }

std::optional<OnnxConstant> fold(const OnnxNode& node, const std::vector<const OnnxConstant*>& inputs) {
  const std::string_view op = node.op;
  if (inputs.empty() || !inputs[0]) return std::nullopt;
  const OnnxConstant& first = *inputs[0];
  const bool second = inputs.size() > 1 && inputs[1];
  if (op == "Shape") {
    std::vector<double> sizes(first.dims.begin(), first.dims.end());
    return OnnxConstant{{static_cast<std::int64_t>(sizes.size())}, std::move(sizes), false};
  }
  if (op == "Size") return OnnxConstant{{}, std::vector<double>{static_cast<double>(first.count())}, false};
  if (op == "Cast") return fold_cast(node, first);
  if (op == "Concat") return fold_concat(node, inputs);
  if (op == "Slice") return fold_slice(node, inputs);
  if (op == "Squeeze") return fold_squeeze(node, inputs);
  if (op == "Unsqueeze") return fold_unsqueeze(node, inputs);
  if (op == "Transpose") return fold_transpose(node, first);
  if (op == "Gather" && second) return fold_gather(node, first, *inputs[1]);
  if (op == "Range" && inputs.size() == 3 && second && inputs[2])
    return fold_range(first, *inputs[1], *inputs[2]);
  if (op == "ConstantOfShape" && first.values) {
    const OnnxAttribute* value = node.find("value");
    const bool known = value && value->tensor && value->tensor->values && !value->tensor->values->empty();
    return fold_filled(integers(first), known ? value->tensor->values->front() : 0,
                       known && value->tensor->is_float);
  }
  if (op == "Expand" && second && inputs[1]->values) {
    const std::optional<OnnxDims> dims = broadcast(first.dims, integers(*inputs[1]));
    if (!dims) return std::nullopt;
    const bool one = first.values && first.values->size() == 1;
    return fold_filled(*dims, one ? std::optional(first.values->front()) : std::nullopt, first.is_float);
  }
  if (op == "Reshape" && second && inputs[1]->values) {
    const auto dims = reshaped(first.dims, *inputs[1]->values, node.number_or("allowzero", 0) != 0);
    if (!dims) return std::nullopt;
    OnnxConstant result = first;
    result.dims = *dims;
    return result;
  }
  if (op == "ReduceProd" && first.values) {
    const double product =
        std::accumulate(first.values->begin(), first.values->end(), 1.0, std::multiplies<>());
    return OnnxConstant{{}, std::vector<double>{product}, first.is_float};
  }
  if (op == "Where" && inputs.size() == 3 && second && inputs[2] && first.values && inputs[1]->values &&
      inputs[2]->values && first.dims == inputs[1]->dims && first.dims == inputs[2]->dims) {
    OnnxConstant result = *inputs[1];
    for (std::size_t i = 0; i < first.values->size(); ++i)
      if ((*first.values)[i] == 0) (*result.values)[i] = (*inputs[2]->values)[i];
    return result;
  }
  if (std::find(foldable_binaries.begin(), foldable_binaries.end(), op) != foldable_binaries.end() && second)
    return fold_binary(node, first, *inputs[1]);
  if (op == "Less" && second) return fold_binary(node, first, *inputs[1]);
  return fold_unary(node, first);
}

}  // namespace convoy::models
