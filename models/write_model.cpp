// SPDX-License-Identifier: MIT
#include "models/write_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace convoy::inline models {
namespace {

/// In double quotes, as JSON and YAML have it.
std::string quoted_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

/// Writes the keys of a layer that differ from what its kind has without them.
class LayerWriter {
 public:
  explicit LayerWriter(std::string& out) : out_(out) {}

  void key(const char* name, const std::string& value) { out_ += fmt::format(", {}: {}", name, value); }
  void required(const char* name, std::int64_t value) { key(name, std::to_string(value)); }
  void required(const char* name, Size2 v) { key(name, sides(std::array{v.h, v.w})); }
  void required(const char* name, Size3 v) { key(name, sides(std::array{v.d, v.h, v.w})); }
  void required(const char* name, const std::vector<std::int64_t>& v) {
    key(name, fmt::format("[{}]", fmt::join(v, ", ")));
  }
  void required(const char* name, double value) { key(name, fmt::format("{}", value)); }
  void required(const char* name, bool value) { key(name, value ? "true" : "false"); }
  template <class Value>
  void optional(const char* name, const Value& value, const Value& otherwise) {
    if (!(value == otherwise)) required(name, value);
  }

  template <class Kind>
  void convolution(const Kind& it) {
    const Kind fresh;
    required("out_channels", it.out_channels);
    required("kernel", it.kernel);
    optional("stride", it.stride, fresh.stride);
    optional("padding", it.padding, fresh.padding);
    optional("dilation", it.dilation, fresh.dilation);
    optional("groups", it.groups, fresh.groups);
    optional("bias", it.bias, fresh.bias);
  }
  template <class Kind>
  void pool(const Kind& it) {
    required("kernel", it.kernel);
    optional("stride", it.stride, it.kernel);
    optional("padding", it.padding, Kind{}.padding);
  }

  void operator()(const Conv2d& it) {
    convolution(it);
    optional("l2_loss", it.l2_loss, false);
  }
  void operator()(const DeformConv2d& it) { convolution(it); }
  void operator()(const Conv3d& it) { convolution(it); }
  void operator()(const ConvTranspose2d& it) {
    convolution(it);
    optional("output_padding", it.output_padding, ConvTranspose2d{}.output_padding);
  }
  void operator()(const ConvTranspose3d& it) {
    convolution(it);
    optional("output_padding", it.output_padding, ConvTranspose3d{}.output_padding);
  }
  void operator()(const Linear& it) {
    required("out_features", it.out_features);
    optional("bias", it.bias, true);
    optional("last_axis", it.last_axis, false);
    optional("channels", it.channels, false);
    optional("l2_loss", it.l2_loss, false);
  }
  void operator()(const Attention& it) {
    static constexpr std::array scores{"of_framework", "kept", "recomputed"};
    required("heads", it.heads);
    optional("window", it.window, Attention{}.window);
    optional("shift", it.shift, false);
    optional("position_bias", it.position_bias, false);
    optional("position_units", it.position_units, Attention{}.position_units);
    optional("cosine", it.cosine, false);
    if (it.scores != Attention::Scores::of_framework)
      key("scores", scores[static_cast<std::size_t>(it.scores)]);
  }
  void operator()(const ClassToken& it) { optional("tokens", it.tokens, ClassToken{}.tokens); }
  void operator()(const Normalization& it) {
    if (it.over == Normalization::Over::group) required("groups", it.groups);
    optional("affine", it.affine, true);
    optional("last_axis", it.last_axis, false);
  }
  void operator()(const LocalResponseNorm& it) { optional("size", it.size, LocalResponseNorm{}.size); }
  void operator()(const Pool& it) {
    pool(it);
    optional("ceil", it.ceil, false);
  }
  void operator()(const Pool3d& it) { pool(it); }
  void operator()(const AdaptiveAvgPool& it) { optional("size", it.size, AdaptiveAvgPool{}.size); }
  void operator()(const Dropout& it) { optional("rate", it.rate, Dropout{}.rate); }
  void operator()(const Concat& it) { optional("axis", it.axis, Concat{}.axis); }
  void operator()(const Slice& it) {
    const Slice fresh;
    required("first", it.first);
    optional("last", it.last, fresh.last);
    optional("axis", it.axis, fresh.axis);
    optional("step", it.step, fresh.step);
  }
  void operator()(const ChannelShuffle& it) { required("groups", it.groups); }
  void operator()(const Upsample& it) {
    if (it.size != Upsample{}.size)
      required("size", it.size);
    else
      required("scale", it.scale);
  }
  void operator()(const Reshape& it) { required("output", it.output); }
  void operator()(const Transpose& it) { required("axes", it.axes); }
  void operator()(const Pad& it) {
    const Pad fresh;
    optional("top", it.top, fresh.top);
    optional("left", it.left, fresh.left);
    optional("bottom", it.bottom, fresh.bottom);
    optional("right", it.right, fresh.right);
  }
  void operator()(const RoiAlign& it) {
    required("rois", it.rois);
    required("size", it.size);
    optional("sampling", it.sampling, RoiAlign{}.sampling);
  }
  void operator()(const SideInput& it) { required("output", it.output); }
  void operator()(const DetectionLoss& it) {
    static constexpr std::array functions{"focal", "cross_entropy", "binary_cross_entropy", "smooth_l1",
                                          "squared_error"};
    key("function", functions[static_cast<std::size_t>(it.function)]);
    optional("share", it.share, DetectionLoss{}.share);
  }
  void operator()(const Elementwise& it) {
    const Elementwise fresh;
    optional("output", it.output, fresh.output);
    optional("parameters", it.parameters, fresh.parameters);
    optional("keeps_inputs", it.keeps_inputs, fresh.keeps_inputs);
  }
  void operator()(const Custom& it) {
    if (it.forward_s > 0 || it.backward_s > 0) {
      key("forward_time", fmt::format("{}s", it.forward_s));
      key("backward_time", fmt::format("{}s", it.backward_s));
    } else {
      required("forward_flops", it.forward_flops);
      required("backward_flops", it.backward_flops);
      optional("memory_bytes", it.memory_bytes, 0.0);
    }
    optional("parameters", it.parameters, std::int64_t{0});
    required("output", it.output);
  }
  // The kind says all.
  void operator()(const PositionEmbedding&) {}
  void operator()(const FrozenBatchNorm&) {}
  void operator()(const Activation&) {}
  void operator()(const Flatten&) {}
  void operator()(const Add&) {}
  void operator()(const Multiply&) {}
  void operator()(const Scale&) {}
  void operator()(const MatMul&) {}

 private:
  /// One number where all are equal.
  template <std::size_t N>
  static std::string sides(const std::array<std::int64_t, N>& values) {
    for (const std::int64_t value : values)
      if (value != values[0]) return fmt::format("[{}]", fmt::join(values, ", "));
    return std::to_string(values[0]);
  }

  std::string& out_;
};

}  // namespace

std::string model_file(const Model& model) {
  std::string out =
      fmt::format("name: {}\ninput: [{}]\n", quoted_text(model.name), fmt::join(model.input, ", "));
  if (model.cross_entropy_loss) out += "loss: cross_entropy\n";
  out += "layers:\n";
  const auto name_of = [&](LayerIndex layer) {
    return layer == image_input ? "input" : quoted_text(model.layers[static_cast<std::size_t>(layer)].name);
  };
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    out += fmt::format("  - {{name: {}, kind: {}", quoted_text(layer.name), kind_name(layer.kind));
    LayerWriter writer(out);
    std::visit(writer, layer.kind);
    const std::vector<LayerIndex> before{static_cast<LayerIndex>(i) - 1};  // of the first: the image
    if (layer.inputs != before) {
      std::vector<std::string> names;
      for (const LayerIndex input : layer.inputs) names.push_back(name_of(input));
      writer.key("inputs", fmt::format("[{}]", fmt::join(names, ", ")));
    }
    if (layer.frozen) writer.key("frozen", "true");
    if (layer.shares()) writer.key("weights_of", name_of(layer.weights_of));
    out += "}\n";
  }
  return out;
}

}  // namespace convoy::models
