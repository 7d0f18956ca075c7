// SPDX-License-Identifier: MIT
#include "models/locality.h"

#include <variant>

namespace convoy {
namespace {

std::int64_t along(const Size2& size, ImageAxis axis) { return axis == ImageAxis::height ? size.h : size.w; }

struct SpatialRules {
  bool operator()(const Conv2d&) const { return true; }
  bool operator()(const ConvTranspose2d&) const { return true; }
  bool operator()(const Normalization& norm) const {
    return norm.over == Normalization::Over::batch ||
           (norm.over == Normalization::Over::layer && !norm.last_axis);
  }
  bool operator()(const LocalResponseNorm&) const { return true; }
  bool operator()(const Activation& activation) const {
    return activation.function != Activation::Function::softmax;
  }
  bool operator()(const Pool&) const { return true; }
  bool operator()(const Dropout&) const { return true; }
  bool operator()(const Concat& concat) const { return concat.axis == 0; }
  bool operator()(const Slice&) const { return true; }
  bool operator()(const ChannelShuffle&) const { return true; }
  bool operator()(const Add&) const { return true; }
  bool operator()(const Multiply&) const { return true; }
  bool operator()(const Scale&) const { return true; }
  bool operator()(const Upsample&) const { return true; }
  bool operator()(const Pad&) const { return true; }
  // They mix rows, or nothing is known of them.
  bool operator()(const Linear&) const { return false; }
  bool operator()(const AdaptiveAvgPool&) const { return false; }
  bool operator()(const Flatten&) const { return false; }
  bool operator()(const Reshape&) const { return false; }
  bool operator()(const Transpose&) const { return false; }
  bool operator()(const MatMul&) const { return false; }
  bool operator()(const Elementwise&) const { return false; }
  bool operator()(const Custom&) const { return false; }
};

/// Rows that a row of the output is made of; nothing: the same row, and sizes must agree.
class RowRules {
 public:
  RowRules(const Layer& layer, ImageAxis axis, std::int64_t input_size, std::int64_t out)
      : layer_(layer), axis_(axis), input_size_(input_size), out_(out) {}
  using Rows = std::vector<std::int64_t>;

  Rows operator()(const Conv2d& conv) const { return rows_of(window(conv)); }
  Rows operator()(const ConvTranspose2d& conv) const { return rows_of_transposed(window(conv)); }
  Rows operator()(const Pool& pool) const {
    return rows_of({along(pool.kernel, axis_), along(pool.stride, axis_), along(pool.padding, axis_), 1});
  }
  Rows operator()(const Upsample&) const {
    return one(out_ * input_size_ / layer_.output[static_cast<std::size_t>(axis_)]);
  }
  Rows operator()(const Pad& pad) const {
    return one(out_ - (axis_ == ImageAxis::height ? pad.top : pad.left));
  }
  Rows operator()(const Slice& slice) const {
    return one(slice.axis == static_cast<std::int64_t>(axis_) ? slice.first + out_ * slice.step : out_);
  }
  Rows operator()(const Normalization&) const { return one(out_); }
  Rows operator()(const LocalResponseNorm&) const { return one(out_); }
  Rows operator()(const Activation&) const { return one(out_); }
  Rows operator()(const Dropout&) const { return one(out_); }
  Rows operator()(const Concat&) const { return one(out_); }
  Rows operator()(const ChannelShuffle&) const { return one(out_); }
  Rows operator()(const Add&) const { return one(out_); }
  Rows operator()(const Multiply&) const { return one(out_); }
  Rows operator()(const Scale&) const { return one(out_); }
  // Not spatial.
  Rows operator()(const Linear&) const { return {}; }
  Rows operator()(const AdaptiveAvgPool&) const { return {}; }
  Rows operator()(const Flatten&) const { return {}; }
  Rows operator()(const Reshape&) const { return {}; }
  Rows operator()(const Transpose&) const { return {}; }
  Rows operator()(const MatMul&) const { return {}; }
  Rows operator()(const Elementwise&) const { return {}; }
  Rows operator()(const Custom&) const { return {}; }

 private:
  struct Window {
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  };

  template <class Kernel>
  Window window(const Kernel& kind) const {
    return {along(kind.kernel, axis_), along(kind.stride, axis_), along(kind.padding, axis_),
            along(kind.dilation, axis_)};
  }

  Rows one(std::int64_t row) const { return row < 0 || row >= input_size_ ? Rows{} : Rows{row}; }

  Rows rows_of(const Window& w) const {
    Rows rows;
    for (std::int64_t t = 0; t < w.kernel; ++t) {
      const std::int64_t row = out_ * w.stride - w.padding + t * w.dilation;
      if (row >= 0 && row < input_size_) rows.push_back(row);
    }
    return rows;
  }

  /// Row `in` of a transposed convolution's input adds to rows in stride - padding + t dilation of its
  /// output.
  Rows rows_of_transposed(const Window& w) const {
    Rows rows;
    for (std::int64_t t = w.kernel - 1; t >= 0; --t) {
      const std::int64_t scaled = out_ + w.padding - t * w.dilation;
      if (scaled >= 0 && scaled % w.stride == 0 && scaled / w.stride < input_size_)
        rows.push_back(scaled / w.stride);
    }
    return rows;
  }

  const Layer& layer_;
  ImageAxis axis_;
  std::int64_t input_size_, out_;
};

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
  return layer.output.size() == 3 && std::visit(SpatialRules{}, layer.kind);
}

bool reads_windows(const Layer& layer, ImageAxis axis) {
  struct Rules {
    ImageAxis axis;
    bool operator()(const Conv2d&) const { return true; }
    bool operator()(const ConvTranspose2d&) const { return true; }
    bool operator()(const Pool&) const { return true; }
    bool operator()(const Upsample&) const { return true; }
    bool operator()(const Pad&) const { return true; }
    bool operator()(const Slice& slice) const { return slice.axis == static_cast<std::int64_t>(axis); }
    bool operator()(const Normalization&) const { return false; }
    bool operator()(const LocalResponseNorm&) const { return false; }
    bool operator()(const Activation&) const { return false; }
    bool operator()(const Dropout&) const { return false; }
    bool operator()(const Concat&) const { return false; }
    bool operator()(const ChannelShuffle&) const { return false; }
    bool operator()(const Add&) const { return false; }
    bool operator()(const Multiply&) const { return false; }
    bool operator()(const Scale&) const { return false; }
    bool operator()(const Linear&) const { return false; }
    bool operator()(const AdaptiveAvgPool&) const { return false; }
    bool operator()(const Flatten&) const { return false; }
    bool operator()(const Reshape&) const { return false; }
    bool operator()(const Transpose&) const { return false; }
    bool operator()(const MatMul&) const { return false; }
    bool operator()(const Elementwise&) const { return false; }
    bool operator()(const Custom&) const { return false; }
  };
  return std::visit(Rules{axis}, layer.kind);
}

std::vector<std::int64_t> rows_read(const Layer& layer, ImageAxis axis, std::int64_t input_size,
                                    std::int64_t out) {
  return std::visit(RowRules(layer, axis, input_size, out), layer.kind);
}

std::vector<ChannelSource> channel_sources(const Model& model, const Layer& layer) {
  return std::visit(ChannelRules(model, layer), layer.kind);
}

}  // namespace convoy
