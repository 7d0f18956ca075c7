// SPDX-License-Identifier: MIT
#include "models/layer_registry.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "models/layer_keys.h"
#include "sim/base/names.h"

namespace convoy::inline models {
namespace {

template <class Kind>
using Integer = std::int64_t Kind::*;

/// An axis of a tensor, 0 by default: the channels.
template <class Kind>
Key<Kind> axis_key(std::string meaning) {
  return integer_key<Kind>("axis", 0, max_axes - 1, std::move(meaning), &Kind::axis);
}

template <class Kind>
Keys<Kind> convolution_keys() {
  return {required_integer_key<Kind>("out_channels", 1, max_size, "of the output", &Kind::out_channels),
          required_size2_key<Kind>("kernel", 1, "of the window", &Kind::kernel),
          size2_key<Kind>("stride", 1, "from window to window", &Kind::stride),
          size2_key<Kind>("padding", 0, "zeros on each side", &Kind::padding),
          size2_key<Kind>("dilation", 1, "from one value of a window to the next", &Kind::dilation),
          integer_key<Kind>("groups", 1, max_size, "of channels; as many as input channels: depthwise",
                            &Kind::groups),
          flag_key<Kind>("bias", "a learned shift", &Kind::bias)};
}

template <class Kind>
Key<Kind> l2_loss_key() {
  return flag_key<Kind>("l2_loss", "the sum of the squares of its weights is part of the loss",
                        &Kind::l2_loss);
}

Keys<Conv2d> plain_convolution_keys() {
  Keys<Conv2d> keys = convolution_keys<Conv2d>();
  keys.push_back(l2_loss_key<Conv2d>());
  return keys;
}

Keys<ConvTranspose2d> transposed_convolution_keys() {
  Keys<ConvTranspose2d> keys = convolution_keys<ConvTranspose2d>();
  keys.push_back(size2_key<ConvTranspose2d>("output_padding", 0, "added to the output on one side",
                                            &ConvTranspose2d::output_padding));
  return keys;
}

template <class Kind>
Keys<Kind> volume_convolution_keys() {
  return {required_integer_key<Kind>("out_channels", 1, max_size, "of the output", &Kind::out_channels),
          required_size3_key<Kind>("kernel", 1, "of the window", &Kind::kernel),
          size3_key<Kind>("stride", 1, "from window to window", &Kind::stride),
          size3_key<Kind>("padding", 0, "zeros on each side", &Kind::padding),
          size3_key<Kind>("dilation", 1, "from one value of a window to the next", &Kind::dilation),
          integer_key<Kind>("groups", 1, max_size, "of channels; as many as input channels: depthwise",
                            &Kind::groups),
          flag_key<Kind>("bias", "a learned shift", &Kind::bias)};
}

Keys<ConvTranspose3d> transposed_volume_convolution_keys() {
  Keys<ConvTranspose3d> keys = volume_convolution_keys<ConvTranspose3d>();
  keys.push_back(size3_key<ConvTranspose3d>("output_padding", 0, "added to the output on one side",
                                            &ConvTranspose3d::output_padding));
  return keys;
}

Keys<Attention> attention_keys() {
  return {
      required_integer_key<Attention>("heads", 1, max_size, "into which channels are divided",
                                      &Attention::heads),
      custom_key<Attention>("window", "all tokens", size2_form(1),
                            "of pixels, among which alone there is attention",
                            [](YamlMap& map, Attention& layer) {
                              if (map.find("window")) layer.window = read_size2(map, "window", 1);
                            }),
      flag_key<Attention>("shift", "windows are shifted by half their size", &Attention::shift),
      flag_key<Attention>("position_bias", "a learned term for each relative position in a window and head",
                          &Attention::position_bias),
      optional_integer_key<Attention>("position_units", "a table", 1, max_size,
                                      "hidden units of a perceptron that computes these terms (Swin V2: 512)",
                                      &Attention::position_units),
      flag_key<Attention>(
          "cosine",
          "queries and keys are divided by their norms, scores multiplied by a learned factor a head",
          &Attention::cosine),
      choice_key<Attention>("scores", {"of_framework", "kept", "recomputed"},
                            "whether the softmax is written and kept, or computed again by the backward "
                            "pass of one kernel",
                            &Attention::scores)};
}

Keys<Pool3d> volume_pool_keys() {
  return {required_size3_key<Pool3d>("kernel", 1, "of the window", &Pool3d::kernel),
          custom_key<Pool3d>("stride", "as kernel", size3_form(1), "from window to window",
                             [](YamlMap& map, Pool3d& pool) {
                               pool.stride = map.find("stride") ? read_size3(map, "stride", 1) : pool.kernel;
                             }),
          custom_key<Pool3d>("padding", "0", size3_form(0), "on each side, at most half the kernel",
                             [](YamlMap& map, Pool3d& pool) {
                               if (map.find("padding")) pool.padding = read_size3(map, "padding", 0);
                               const Size3 &padding = pool.padding, &kernel = pool.kernel;
                               if (2 * padding.d > kernel.d || 2 * padding.h > kernel.h ||
                                   2 * padding.w > kernel.w)
                                 map.fail("padding",
                                          "must be at most half the kernel, or windows would hold padding "
                                          "only");
                             })};
}

Keys<RoiAlign> roi_align_keys() {
  return {required_integer_key<RoiAlign>("rois", 1, max_size, "regions of an image", &RoiAlign::rois),
          required_size2_key<RoiAlign>("size", 1, "of a region in the output", &RoiAlign::size),
          integer_key<RoiAlign>("sampling", 1, 64, "samples a side of each value", &RoiAlign::sampling)};
}

Keys<DetectionLoss> detection_loss_keys() {
  return {choice_key<DetectionLoss>(
              "function", {"focal", "cross_entropy", "binary_cross_entropy", "smooth_l1", "squared_error"},
              "of the values", &DetectionLoss::function),
          number_key<DetectionLoss>("share", 0, 1, "of the input's values that the loss is of",
                                    &DetectionLoss::share)};
}

Keys<Linear> linear_keys() {
  return {
      required_integer_key<Linear>("out_features", 1, max_size, "of the output", &Linear::out_features),
      flag_key<Linear>("bias", "a learned shift", &Linear::bias),
      flag_key<Linear>("last_axis", "on the last axis of any tensor, not on a vector", &Linear::last_axis),
      flag_key<Linear>("channels", "on the channels of each token or pixel, not on a vector",
                       &Linear::channels),
      l2_loss_key<Linear>()};
}

Key<Normalization> affine_key() {
  return flag_key<Normalization>("affine", "a learned scale and shift a channel", &Normalization::affine);
}

template <class Kind>
Key<Kind> groups_key(std::string meaning) {
  return required_integer_key<Kind>("groups", 1, max_size, std::move(meaning), &Kind::groups);
}

Keys<Pool> pool_keys() {
  return {required_size2_key<Pool>("kernel", 1, "of the window", &Pool::kernel),
          custom_key<Pool>("stride", "as kernel", size2_form(1), "from window to window",
                           [](YamlMap& map, Pool& pool) {
                             pool.stride = map.find("stride") ? read_size2(map, "stride", 1) : pool.kernel;
                           }),
          custom_key<Pool>(
              "padding", "0", size2_form(0), "on each side, at most half the kernel",
              [](YamlMap& map, Pool& pool) {
                if (map.find("padding")) pool.padding = read_size2(map, "padding", 0);
                if (2 * pool.padding.h > pool.kernel.h || 2 * pool.padding.w > pool.kernel.w)
                  map.fail("padding", "must be at most half the kernel, or windows would hold padding only");
              }),
          flag_key<Pool>("ceil", "the output's size rounded up instead of down", &Pool::ceil)};
}

Keys<Slice> slice_keys() {
  return {required_integer_key<Slice>("first", 0, max_size, "index", &Slice::first),
          custom_key<Slice>("last", "the end", forms::whole(1, max_size).said("a whole number above first"),
                            "behind the last index",
                            [](YamlMap& map, Slice& slice) {
                              if (!map.has("last")) return;
                              slice.last = map.integer("last", 1, max_size);
                              if (slice.last <= slice.first)
                                map.fail("last",
                                         fmt::format("must be more than first, which is {}", slice.first));
                            }),
          axis_key<Slice>("that is cut"),
          integer_key<Slice>("step", 1, max_size, "from one index to the next", &Slice::step)};
}

Keys<Upsample> upsample_keys() {
  return {custom_key<Upsample>("scale", "2", forms::whole(1, max_size), "factor on height and width",
                               [](YamlMap& map, Upsample& upsample) {
                                 if (!map.has("size")) {
                                   upsample.scale = map.integer_or("scale", 2, 1, max_size);
                                   return;
                                 }
                                 if (map.has("scale"))
                                   map.fail("scale", "size is given too; give one of the two");
                                 upsample.scale = 1;
                               }),
          custom_key<Upsample>("size", "by scale", size2_form(1), "of the output",
                               [](YamlMap& map, Upsample& upsample) {
                                 if (map.find("size")) upsample.size = read_size2(map, "size", 1);
                               })};
}

Keys<Transpose> transpose_keys() {
  return {list_key<Transpose>(
              "axes", "", forms::list(forms::whole(0, max_axes - 1), "a list such as [1, 2, 0]", 1),
              "of the input in their new order",
              [](YamlMap& map, Transpose& transpose) { transpose.axes = read_axes(map, "axes"); })
              .told_required()};
}

Key<Pad> pad_key(std::string side, Integer<Pad> field) {
  return integer_key<Pad>(std::move(side), 0, max_size, "rows or columns of zeros on that side", field);
}

template <class Kind>
Key<Kind> parameters_key() {
  return integer_key<Kind>("parameters", 0, YamlMap::max_integer, "learned numbers", &Kind::parameters);
}

Keys<Elementwise> elementwise_keys() {
  return {list_key<Elementwise>("output", "the first input's", shape_form(), "of one image",
                                [](YamlMap& map, Elementwise& layer) {
                                  if (map.has("output")) layer.output = read_shape(map, "output");
                                }),
          parameters_key<Elementwise>(),
          flag_key<Elementwise>("keeps_inputs", "until the backward pass", &Elementwise::keeps_inputs)};
}

/// A custom layer's cost is its times, or its FLOPs and bytes.
bool is_timed(const YamlMap& map) { return map.has("forward_time") || map.has("backward_time"); }

Key<Custom> custom_time_key(std::string name, std::string pass, double Custom::*field) {
  return {key_text(name, "none", forms::quantity(Dimension::time),
                   "of the " + pass + " pass on any device, instead of FLOPs and bytes"),
          [name, field](YamlMap& map, Custom& custom) {
            if (is_timed(map)) custom.*field = map.quantity(name, Dimension::time);
          }};
}

/// @param optional the key may be left out, and is 0 then
Key<Custom> custom_work_key(std::string name, bool optional, std::string meaning, double Custom::*field) {
  constexpr double most = 1e30;  // of an image: a device of 10 TFLOPS computes for billions of years
  return {key_text(name, optional ? "0" : "", forms::number(0, most), std::move(meaning)),
          [name, optional, field](YamlMap& map, Custom& custom) {
            if (!is_timed(map))
              custom.*field = optional ? map.number_or(name, 0, 0, most) : map.number(name, 0, most);
            else if (map.has(name))
              map.fail(name,
                       "forward_time and backward_time are the whole cost; give these, or FLOPs and bytes");
          }};
}

Keys<Custom> custom_layer_keys() {
  return {
      custom_work_key("forward_flops", false, "of the forward pass; without times, required",
                      &Custom::forward_flops),
      custom_work_key("backward_flops", false, "of the backward pass; without times, required",
                      &Custom::backward_flops),
      custom_work_key("memory_bytes", true, "memory traffic of the forward pass, and again of the backward",
                      &Custom::memory_bytes),
      custom_time_key("forward_time", "forward", &Custom::forward_s),
      custom_time_key("backward_time", "backward", &Custom::backward_s),
      parameters_key<Custom>(),
      list_key<Custom>("output", "", shape_form(), "of one image", [](YamlMap& map, Custom& layer) {
        layer.output = read_shape(map, "output");
      }).told_required()};
}

/// A row of the registry. @param fresh the kind before its keys are read
template <class Kind>
LayerEntry row(std::string_view name, std::string_view summary, Kind fresh, Keys<Kind> keys = {}) {
  std::vector<KeyText> texts = texts_of(keys);
  return {name, summary, std::move(texts), [keys = std::move(keys), fresh](YamlMap& map) -> LayerKind {
            for (const Key<Kind>& each : keys) map.find(each.text.name);
            map.finish();  // before any key that is missing
            Kind layer = fresh;
            read_keys(keys, map, layer);
            return layer;
          }};
}

LayerEntry pool_row(std::string_view name, std::string_view summary, Pool::Mode mode) {
  Pool fresh;
  fresh.mode = mode;
  return row(name, summary, fresh, pool_keys());
}

using Norm = Normalization;
using enum Activation::Function;

std::vector<LayerEntry> make_registry() {
  const auto last_axis =
      flag_key<Norm>("last_axis", "the channels are the last axis, not the first", &Norm::last_axis);
  return {
      row("conv2d", "convolution, dense or grouped", Conv2d{}, plain_convolution_keys()),
      row("conv_transpose2d", "transposed convolution", ConvTranspose2d{}, transposed_convolution_keys()),
      row("deform_conv2d", "convolution of windows with learned offsets", DeformConv2d{},
          convolution_keys<DeformConv2d>()),
      row("conv3d", "convolution of volumes", Conv3d{}, volume_convolution_keys<Conv3d>()),
      row("conv_transpose3d", "transposed convolution of volumes", ConvTranspose3d{},
          transposed_volume_convolution_keys()),
      row("attention", "scaled dot-product attention in heads, of all tokens or in windows", Attention{},
          attention_keys()),
      row("class_token", "learned tokens before the others", ClassToken{},
          {integer_key<ClassToken>("tokens", 1, max_size, "that are learned", &ClassToken::tokens)}),
      row("position_embedding", "a learned term for every value", PositionEmbedding{}),
      row("linear", "fully connected layer on a vector", Linear{}, linear_keys()),
      row("batch_norm", "batch normalization", Norm{Norm::Over::batch}, {affine_key()}),
      row("layer_norm", "layer normalization over the channels", Norm{Norm::Over::layer},
          {affine_key(), last_axis}),
      row("group_norm", "group normalization; instance normalization with a group a channel",
          Norm{Norm::Over::group}, {groups_key<Norm>("of channels"), affine_key()}),
      row("frozen_batch_norm", "a fixed factor and term a channel", FrozenBatchNorm{}),
      row("local_response_norm", "local response normalization across channels", LocalResponseNorm{},
          {integer_key<LocalResponseNorm>("size", 1, max_size, "channels of a window",
                                          &LocalResponseNorm::size)}),
      row("relu", "max(x, 0)", Activation{relu}),
      row("relu6", "min(max(x, 0), 6)", Activation{relu6}),
      row("leaky_relu", "x, or a fraction of it where negative", Activation{leaky_relu}),
      row("hardswish", "x relu6(x + 3) / 6", Activation{hardswish}),
      row("hardsigmoid", "relu6(x + 3) / 6", Activation{hardsigmoid}),
      row("silu", "x sigmoid(x), also called swish", Activation{silu}),
      row("gelu", "x times the normal distribution function of x", Activation{gelu}),
      row("sigmoid", "1 / (1 + exp(-x))", Activation{sigmoid}),
      row("tanh", "hyperbolic tangent", Activation{Activation::Function::tanh}),
      row("softmax", "softmax over the channels", Activation{softmax}),
      pool_row("max_pool", "maximum of each window", Pool::Mode::max),
      pool_row("avg_pool", "mean of each window", Pool::Mode::average),
      row("max_pool3d", "maximum of each window of a volume", Pool3d{Pool::Mode::max, {}, {}, {0, 0, 0}},
          volume_pool_keys()),
      row("avg_pool3d", "mean of each window of a volume", Pool3d{Pool::Mode::average, {}, {}, {0, 0, 0}},
          volume_pool_keys()),
      row("adaptive_avg_pool", "mean of windows chosen to give an output size", AdaptiveAvgPool{},
          {size2_key<AdaptiveAvgPool>("size", 1, "of the output", &AdaptiveAvgPool::size)}),
      row("dropout", "random zeros while training", Dropout{},
          {number_key<Dropout>("rate", 0, 1, "share of zeros", &Dropout::rate)}),
      row("flatten", "the input as a vector; a view, free of cost", Flatten{}),
      row("concat", "inputs one after the other along the channels, or another axis", Concat{},
          {axis_key<Concat>("along which inputs are joined")}),
      row("slice", "a range of channels, or along another axis; a view", Slice{}, slice_keys()),
      row("channel_shuffle", "channels of the groups interleaved", ChannelShuffle{},
          {groups_key<ChannelShuffle>("of channels")}),
      row("add", "sum of inputs of one shape, or of size 1 where others are larger", Add{}),
      row("multiply", "product of two inputs of one shape, or of size 1 where the other is larger",
          Multiply{}),
      row("scale", "a learned factor a channel", Scale{}),
      row("upsample", "height and width times a whole number, or to a size", Upsample{}, upsample_keys()),
      row("reshape", "the same values under another shape; a view", Reshape{},
          {list_key<Reshape>("output", "", shape_form(), "of one image",
                             [](YamlMap& map, Reshape& layer) { layer.output = read_shape(map, "output"); })
               .told_required()}),
      row("transpose", "axes in another order; a view", Transpose{}, transpose_keys()),
      row("pad", "zeros around height and width", Pad{},
          {pad_key("top", &Pad::top), pad_key("left", &Pad::left), pad_key("bottom", &Pad::bottom),
           pad_key("right", &Pad::right)}),
      row("matmul", "product of two inputs of matrices", MatMul{}),
      row("roi_align", "samples of regions of an image, one below the other", RoiAlign{}, roi_align_keys()),
      row("side_input", "what comes with an image besides it: a text, a time step", SideInput{},
          {list_key<SideInput>("output", "", shape_form(), "of one image",
                               [](YamlMap& map, SideInput& side) { side.output = read_shape(map, "output"); })
               .told_required()}),
      row("detection_loss", "a loss of a detector, by stated counts of kernels", DetectionLoss{},
          detection_loss_keys()),
      row("elementwise", "anything that reads its inputs and writes its output once", Elementwise{},
          elementwise_keys()),
      row("custom", "a layer given by its costs, per image", Custom{}, custom_layer_keys()),
  };
}

}  // namespace

const std::vector<LayerEntry>& layer_registry() {
  static const std::vector<LayerEntry> registry = make_registry();
  return registry;
}

LayerKind read_layer_kind(YamlMap& map) {
  const std::string kind = map.text("kind");
  for (const LayerEntry& entry : layer_registry())
    if (entry.kind == kind) return entry.read(map);
  std::vector<std::string> known;
  for (const LayerEntry& entry : layer_registry()) known.emplace_back(entry.kind);
  map.fail("kind", fmt::format("unknown layer kind '{}'{}; known: {}", kind, suggestion(kind, known),
                               list_of(known, known.size())));
}

std::string_view kind_name(const LayerKind& kind) {
  struct Name {
    std::string_view operator()(const Conv2d&) const { return "conv2d"; }
    std::string_view operator()(const ConvTranspose2d&) const { return "conv_transpose2d"; }
    std::string_view operator()(const DeformConv2d&) const { return "deform_conv2d"; }
    std::string_view operator()(const Conv3d&) const { return "conv3d"; }
    std::string_view operator()(const ConvTranspose3d&) const { return "conv_transpose3d"; }
    std::string_view operator()(const Attention&) const { return "attention"; }
    std::string_view operator()(const ClassToken&) const { return "class_token"; }
    std::string_view operator()(const PositionEmbedding&) const { return "position_embedding"; }
    std::string_view operator()(const FrozenBatchNorm&) const { return "frozen_batch_norm"; }
    std::string_view operator()(const Pool3d& pool) const {
      return pool.mode == Pool::Mode::max ? "max_pool3d" : "avg_pool3d";
    }
    std::string_view operator()(const RoiAlign&) const { return "roi_align"; }
    std::string_view operator()(const SideInput&) const { return "side_input"; }
    std::string_view operator()(const DetectionLoss&) const { return "detection_loss"; }
    std::string_view operator()(const Linear&) const { return "linear"; }
    std::string_view operator()(const Normalization& norm) const {
      static constexpr std::array<std::string_view, 3> names{"batch_norm", "layer_norm", "group_norm"};
      return names[static_cast<std::size_t>(norm.over)];
    }
    std::string_view operator()(const LocalResponseNorm&) const { return "local_response_norm"; }
    std::string_view operator()(const Activation& activation) const {
      static constexpr std::array<std::string_view, 10> names{
          "relu", "relu6", "leaky_relu", "hardswish", "hardsigmoid",
          "silu", "gelu",  "sigmoid",    "tanh",      "softmax"};
      return names[static_cast<std::size_t>(activation.function)];
    }
    std::string_view operator()(const Pool& pool) const {
      return pool.mode == Pool::Mode::max ? "max_pool" : "avg_pool";
    }
    std::string_view operator()(const AdaptiveAvgPool&) const { return "adaptive_avg_pool"; }
    std::string_view operator()(const Dropout&) const { return "dropout"; }
    std::string_view operator()(const Flatten&) const { return "flatten"; }
    std::string_view operator()(const Concat&) const { return "concat"; }
    std::string_view operator()(const Slice&) const { return "slice"; }
    std::string_view operator()(const ChannelShuffle&) const { return "channel_shuffle"; }
    std::string_view operator()(const Add&) const { return "add"; }
    std::string_view operator()(const Multiply&) const { return "multiply"; }
    std::string_view operator()(const Scale&) const { return "scale"; }
    std::string_view operator()(const Upsample&) const { return "upsample"; }
    std::string_view operator()(const Reshape&) const { return "reshape"; }
    std::string_view operator()(const Transpose&) const { return "transpose"; }
    std::string_view operator()(const Pad&) const { return "pad"; }
    std::string_view operator()(const MatMul&) const { return "matmul"; }
    std::string_view operator()(const Elementwise&) const { return "elementwise"; }
    std::string_view operator()(const Custom&) const { return "custom"; }
  };
  return std::visit(Name{}, kind);
}

}  // namespace convoy::models
