// SPDX-License-Identifier: MIT
#include "models/locality.h"

#include <variant>

namespace convoy::inline models {
namespace {

std::int64_t along(const Size2& size, ImageAxis axis) { return axis == ImageAxis::height ? size.h : size.w; }

/// How rows (or columns) of a layer's output are made.
enum class Rows : std::uint8_t {
  mixed,   ///< of all rows, or nothing is known
  same,    ///< each of the same row of the inputs
  window,  ///< each of a few rows, which rows_read tells
};

struct RowRules {
  ImageAxis axis;

  Rows operator()(const Conv2d&) const { return Rows::window; }
  Rows operator()(const ConvTranspose2d&) const { return Rows::window; }
  Rows operator()(const Pool&) const { return Rows::window; }
  Rows operator()(const Upsample&) const { return Rows::window; }
  Rows operator()(const Pad&) const { return Rows::window; }
  Rows operator()(const Slice& slice) const {
    return slice.axis == static_cast<std::int64_t>(axis) ? Rows::window : Rows::same;
  }
  Rows operator()(const Normalization& norm) const {
    const bool by_position = norm.over == Normalization::Over::layer && !norm.last_axis;
    return norm.over == Normalization::Over::batch || by_position ? Rows::same : Rows::mixed;
  }
  Rows operator()(const Activation& activation) const {
    return activation.function == Activation::Function::softmax ? Rows::mixed : Rows::same;
  }
  Rows operator()(const Concat& concat) const { return concat.axis == 0 ? Rows::same : Rows::mixed; }
  Rows operator()(const LocalResponseNorm&) const { return Rows::same; }
  Rows operator()(const Dropout&) const { return Rows::same; }
  Rows operator()(const ChannelShuffle&) const { return Rows::same; }
  Rows operator()(const Add&) const { return Rows::same; }
  Rows operator()(const Multiply&) const { return Rows::same; }
  Rows operator()(const Scale&) const { return Rows::same; }
  Rows operator()(const Linear& linear) const { return linear.channels ? Rows::same : Rows::mixed; }
  Rows operator()(const FrozenBatchNorm&) const { return Rows::same; }
  Rows operator()(const PositionEmbedding&) const { return Rows::mixed; }
  Rows operator()(const ClassToken&) const { return Rows::mixed; }
  Rows operator()(const Attention&) const { return Rows::mixed; }
  Rows operator()(const DeformConv2d&) const { return Rows::mixed; }
  Rows operator()(const Conv3d&) const { return Rows::mixed; }
  Rows operator()(const ConvTranspose3d&) const { return Rows::mixed; }
  Rows operator()(const Pool3d&) const { return Rows::mixed; }
  Rows operator()(const RoiAlign&) const { return Rows::mixed; }
  Rows operator()(const SideInput&) const { return Rows::mixed; }
  Rows operator()(const DetectionLoss&) const { return Rows::mixed; }
  Rows operator()(const AdaptiveAvgPool&) const { return Rows::mixed; }
  Rows operator()(const Flatten&) const { return Rows::mixed; }
  Rows operator()(const Reshape&) const { return Rows::mixed; }
  Rows operator()(const Transpose&) const { return Rows::mixed; }
  Rows operator()(const MatMul&) const { return Rows::mixed; }
  Rows operator()(const Elementwise&) const { return Rows::mixed; }
  Rows operator()(const Custom&) const { return Rows::mixed; }
};

struct RowWindow {
  std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
};

template <class Kernel>
RowWindow row_window(const Kernel& kind, ImageAxis axis) {
  return {along(kind.kernel, axis), along(kind.stride, axis), along(kind.padding, axis),
          along(kind.dilation, axis)};
}

std::vector<std::int64_t> one_row(std::int64_t row, std::int64_t input_size) {
  if (row < 0 || row >= input_size) return {};
  return {row};
}

std::vector<std::int64_t> rows_of(const RowWindow& w, std::int64_t input_size, std::int64_t out) {
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < w.kernel; ++t) {
    const std::int64_t row = out * w.stride - w.padding + t * w.dilation;
    if (row >= 0 && row < input_size) rows.push_back(row);
  }
  return rows;
}

/// Row `in` of a transposed convolution's input adds to rows in stride - padding + t dilation of its output.
std::vector<std::int64_t> rows_of_transposed(const RowWindow& w, std::int64_t input_size, std::int64_t out) {
  std::vector<std::int64_t> rows;
  for (std::int64_t t = w.kernel - 1; t >= 0; --t) {
    const std::int64_t scaled = out + w.padding - t * w.dilation;
    if (scaled >= 0 && scaled % w.stride == 0 && scaled / w.stride < input_size)
      rows.push_back(scaled / w.stride);
  }
  return rows;
}

class ChannelRules {
 public:
  ChannelRules(const Model& model, const Layer& layer) : model_(model), layer_(layer) {}
  using Sources = std::vector<ChannelSource>;

  Sources operator()(const Normalization& norm) const {
    return norm.over == Normalization::Over::batch ? same() : Sources{};
  }
  Sources operator()(const Activation& activation) const {
    return activation.function == Activation::Function::softmax ? Sources{} : same();
  }
  Sources operator()(const Pool&) const { return same(); }
  Sources operator()(const Pool3d&) const { return same(); }
  Sources operator()(const FrozenBatchNorm&) const { return same(); }
  Sources operator()(const ClassToken&) const { return same(); }
  Sources operator()(const PositionEmbedding&) const { return same(); }
  /// A head is made of its own queries, keys and values: of each channel, the query's. Those who split
  /// channels must keep those of a head together.
  Sources operator()(const Attention& attention) const {
    if (layer_.inputs.size() > 1) return joined();
    Sources sources;
    const std::int64_t head = outputs() / attention.heads;
    for (std::int64_t c = 0; c < outputs(); ++c) sources.push_back({0, c / head * 3 * head + c % head});
    return sources;
  }
  Sources operator()(const AdaptiveAvgPool&) const { return same(); }
  Sources operator()(const Dropout&) const { return same(); }
  Sources operator()(const Scale&) const { return same(); }
  Sources operator()(const Upsample&) const { return same(); }
  Sources operator()(const Pad&) const { return same(); }
  Sources operator()(const Add&) const { return joined(); }
  Sources operator()(const Multiply&) const { return joined(); }
  Sources operator()(const Flatten&) const {
    Sources sources;
    const std::int64_t times = outputs() / inputs(0);
    for (std::int64_t c = 0; c < outputs(); ++c) sources.push_back({0, c / times});
    return sources;
  }
  Sources operator()(const Concat& concat) const {
    Sources sources;
    if (concat.axis != 0) return sources;
    for (std::size_t k = 0; k < layer_.inputs.size(); ++k)
      for (std::int64_t c = 0; c < inputs(k); ++c) sources.push_back({k, c});
    return sources;
  }
  Sources operator()(const Slice& slice) const {
    Sources sources;
    if (slice.axis != 0) return sources;
    for (std::int64_t c = slice.first; c < slice.last; c += slice.step) sources.push_back({0, c});
    return sources;
  }
  Sources operator()(const ChannelShuffle& shuffle) const {
    Sources sources(static_cast<std::size_t>(outputs()));
    const std::int64_t size = outputs() / shuffle.groups;
    for (std::int64_t c = 0; c < outputs(); ++c)
      sources[static_cast<std::size_t>(c % size * shuffle.groups + c / size)] = {0, c};
    return sources;
  }
  // They mix channels, or nothing is known of them.
  Sources operator()(const Conv2d&) const { return {}; }
  Sources operator()(const ConvTranspose2d&) const { return {}; }
  Sources operator()(const Linear&) const { return {}; }
  Sources operator()(const DeformConv2d&) const { return {}; }
  Sources operator()(const Conv3d&) const { return {}; }
  Sources operator()(const ConvTranspose3d&) const { return {}; }
  Sources operator()(const RoiAlign&) const { return {}; }
  Sources operator()(const SideInput&) const { return {}; }
  Sources operator()(const DetectionLoss&) const { return {}; }
  Sources operator()(const LocalResponseNorm&) const { return {}; }
  Sources operator()(const Reshape&) const { return {}; }
  Sources operator()(const Transpose&) const { return {}; }
  Sources operator()(const MatMul&) const { return {}; }
  Sources operator()(const Elementwise&) const { return {}; }
  Sources operator()(const Custom&) const { return {}; }

 private:
  std::int64_t outputs() const { return layer_.output.front(); }
  std::int64_t inputs(std::size_t k) const { return model_.shape_of(layer_.inputs[k]).front(); }

  Sources same() const {
    Sources sources;
    for (std::int64_t c = 0; c < outputs(); ++c) sources.push_back({ChannelSource::every_input, c});
    return sources;
  }
  /// A factor or term a channel may stand for a whole image's, but not one for all channels.
  Sources joined() const {
    for (std::size_t k = 0; k < layer_.inputs.size(); ++k)
      if (inputs(k) != outputs()) return {};
    return same();
  }

  const Model& model_;
  const Layer& layer_;
};

}  // namespace

bool is_spatial(const Layer& layer) {
  return layer.output.size() == 3 && std::visit(RowRules{ImageAxis::height}, layer.kind) != Rows::mixed;
}

bool reads_windows(const Layer& layer, ImageAxis axis) {
  return std::visit(RowRules{axis}, layer.kind) == Rows::window;
}

std::vector<std::int64_t> rows_read(const Layer& layer, ImageAxis axis, std::int64_t input_size,
                                    std::int64_t out) {
  if (!reads_windows(layer, axis)) return one_row(out, input_size);
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind))
    return rows_of(row_window(*conv, axis), input_size, out);
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind))
    return rows_of_transposed(row_window(*conv, axis), input_size, out);
  if (const auto* pool = std::get_if<Pool>(&layer.kind))
    return rows_of({along(pool->kernel, axis), along(pool->stride, axis), along(pool->padding, axis), 1},
                   input_size, out);
  if (std::holds_alternative<Upsample>(layer.kind))
    return one_row(out * input_size / layer.output[static_cast<std::size_t>(axis)], input_size);
  if (const auto* pad = std::get_if<Pad>(&layer.kind))
    return one_row(out - (axis == ImageAxis::height ? pad->top : pad->left), input_size);
  const Slice& slice = std::get<Slice>(layer.kind);
  return one_row(slice.first + out * slice.step, input_size);
}

std::vector<ChannelSource> channel_sources(const Model& model, const Layer& layer) {
  return std::visit(ChannelRules(model, layer), layer.kind);
}

}  // namespace convoy::models
