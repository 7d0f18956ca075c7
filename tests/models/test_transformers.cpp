// SPDX-License-Identifier: MIT
// Attention, what stands around it, and the networks made of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "models/attention.h"
#include "models/autocast.h"
#include "models/layer_costs.h"
#include "models/summary.h"
#include "models/tensor_bytes.h"
#include "models/token_order.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

double saved_bytes(const Model& model, Framework framework, Precision precision = Precision::fp32) {
  TrainingOptions options;
  options.framework = framework;
  options.precision = precision;
  return saved_activation_bytes(build_training_graph(model, options));
}

std::string attention(const std::string& keys) {
  return fmt::format("  - {{name: x, kind: attention, {}}}\n", keys);
}

/// Multiply-adds of attention, pair by pair: a query meets the keys of its own window.
std::int64_t count_macs(std::int64_t height, std::int64_t width, std::int64_t window, std::int64_t channels) {
  const std::int64_t rows = (height + window - 1) / window, columns = (width + window - 1) / window;
  std::int64_t macs = 0;
  for (std::int64_t w = 0; w < rows * columns; ++w)
    for (std::int64_t query = 0; query < window * window; ++query)
      for (std::int64_t key = 0; key < window * window; ++key) macs += 2 * channels;
  return macs;
}

}  // namespace

TEST_CASE("vision transformers have torchvision's parameters, multiply-adds and saved activations") {
  // Counted on torchvision 0.14.1's own modules in training mode, one 224x224 image: parameters and their
  // tensors; the multiply-adds of every convolution, mm, addmm, bmm and baddbmm that a TorchDispatchMode
  // sees, so with those of attention; and the growth an image of the unique storages that
  // torch.autograd.graph.saved_tensors_hooks sees, less parameters (0: not counted). PyTorch 1.13 kept the
  // scores. Of Swin, less one float of stochastic depth for each branch but the first two, and less the input
  // of the last mean, which PyTorch 2 does not keep.
  struct Counted {
    const char* name;
    std::int64_t parameters;
    std::size_t tensors;
    std::int64_t macs, attention_macs;
    double saved_bytes;
  };
  constexpr Counted counted[] = {
      {"vit_b_16", 86567656, 152, 17563828224, 715327488, 140401192},
      {"vit_b_32", 88224232, 152, 4409186304, 46080000, 31850512},
      {"vit_l_16", 304326632, 296, 61554712576, 1907539968, 0},
      {"vit_l_32", 306535400, 296, 15377539072, 122880000, 0},
      {"vit_h_14", 632045800, 392, 167295109120, 5410734080, 0},
      {"swin_t", 28288354, 173, 4490566656, 140141568, 106784744 - 22 * 4 - 4. * 768 * 7 * 7},
      {"swin_s", 49606258, 329, 8740875264, 228652032, 170157128 - 46 * 4 - 4. * 768 * 7 * 7},
      {"swin_b", 87768224, 329, 15430946816, 304869376, 226603016 - 46 * 4 - 4. * 1024 * 7 * 7},
      // without stochastic depth, one 256x256 image; less the perceptrons of positions, 225 x (2 x 512 + 512 x heads)
      // of each block, which do not depend on images
      {"swin_v2_t", 28351570, 209, 5939690496 - 225 * (1024 * 12 + 512 * 138), 239075328,
       179888128 - 4. * 768 * 8 * 8},
      {"swin_v2_s", 49737442, 401, 11545857024 - 225 * (1024 * 24 + 512 * 282), 390070272,
       289054720 - 4. * 768 * 8 * 8},
      {"swin_v2_b", 87930848, 401, 20325134336 - 225 * (1024 * 24 + 512 * 376), 520093696,
       385049600 - 4. * 1024 * 8 * 8},
  };
  for (const Counted& row : counted) {
    CAPTURE(row.name);
    const Model model = model_from(row.name);
    const ModelSummary summary = summarize(model);
    CHECK(summary.parameters == row.parameters);
    CHECK(summary.parameter_tensors == row.tensors);
    CHECK(summary.forward_macs == row.macs);
    std::int64_t attention_macs = 0;
    for (const LayerSummary& layer : summary.layers)
      if (layer.kind == "attention") attention_macs += layer.forward_macs;
    CHECK(attention_macs == row.attention_macs);
    if (row.saved_bytes > 0) CHECK(saved_bytes(model, Framework::pytorch1) == row.saved_bytes);
  }
}

TEST_CASE("transformers and mixers compute on tokens, CNNs and the U-Net of diffusion do not") {
  for (const char* name : {"vit_b_16", "deit3_small", "swin_t", "swin_v2_t", "mixer_b_16"})
    CHECK_MESSAGE(computes_on_tokens(model_from(name)), name);
  for (const char* name : {"resnet50", "vgg16", "convnext_tiny", "se_resnet50", "inception_v3", "unet",
                           "ddpm_cifar10", "lenet5"})
    CHECK_MESSAGE(!computes_on_tokens(model_from(name)), name);
}

TEST_CASE("DeiT has the parameters of its paper") {
  // timm: deit_tiny_patch16_224 5,717,416, deit_small_patch16_224 22,050,664, deit_base_patch16_224
  // 86,567,656; table 1 of arXiv:2012.12877 has 5, 22 and 86 million.
  CHECK(summarize(model_from("deit_tiny")).parameters == 5717416);
  CHECK(summarize(model_from("deit_small")).parameters == 22050664);
  CHECK(summarize(model_from("deit_base")).parameters == 86567656);
}

TEST_CASE("transformers take images of another size") {
  // 24 x 24 patches and a class token; timm's vit_base_patch16_384 has 86.86 M parameters
  const ModelSummary large = summarize(model_from("{name: vit_b_16, input: [3, 384, 384]}"));
  CHECK(large.parameters == 86567656 + (577 - 197) * 768);
  CHECK(summarize(model_from("{name: swin_t, input: [3, 448, 448]}")).parameters == 28288354);
}

TEST_CASE("segmentation makes a map of the image's size, whatever that is") {
  for (const char* name : {"fcn_resnet50", "deeplabv3_resnet101"}) {
    CAPTURE(name);
    const auto outputs = [&](const std::string& keys) {
      return summarize(model_from(fmt::format("{{name: {}, {}}}", name, keys))).layers.back().output_shape;
    };
    CHECK(outputs("classes: 5") == Shape{5, 520, 520});
    CHECK(outputs("classes: 5, input: [3, 253, 326]") == Shape{5, 253, 326});
  }
  CHECK(summarize(model_from("{name: fcn_resnet50, input: [3, 256, 256], height: 128, width: 64}"))
            .layers.back()
            .output_shape == Shape{21, 128, 64});
}

TEST_CASE("attention multiplies what its queries and keys say, counted pair by pair") {
  for (const auto& [height, width, window, channels] :
       {std::array{8, 8, 4, 6}, std::array{7, 9, 4, 6}, std::array{5, 5, 5, 12}, std::array{3, 3, 7, 6}}) {
    CAPTURE(height);
    CAPTURE(window);
    const Model model = toy(fmt::format("[{}, {}, {}]", 3 * channels, height, width),
                            attention(fmt::format("heads: 3, window: {}", window)));
    CHECK(model.layers[0].macs == count_macs(height, width, window, channels));
    CHECK(model.layers[0].output == Shape{channels, height, width});
  }
  // all tokens: 2 x 5 x 5 x 12
  CHECK(toy("[36, 5]", attention("heads: 4")).layers[0].macs == 2 * 5 * 5 * 12);
  // 4 queries of 6 channels meet 9 keys: 2 x 4 x 9 x 6
  const Model crossed = toy("[6, 4]",
                            "  - {name: text, kind: side_input, inputs: [input], output: [8, 9]}\n"
                            "  - {name: k, kind: linear, channels: true, out_features: 6}\n"
                            "  - {name: v, kind: linear, inputs: [text], channels: true, out_features: 6}\n"
                            "  - {name: x, kind: attention, inputs: [input, k, v], heads: 2}\n");
  CHECK(crossed.layers[3].macs == 2 * 4 * 9 * 6);
  CHECK(crossed.layers[3].output == Shape{6, 4});
}

TEST_CASE("recomputed scores cost a product more and save the scores' bytes [closed form]") {
  const double n = 50, c = 24, heads = 4, products = 2 * 2 * n * n * c, scores = heads * n * n;
  const auto model = [](const std::string& how) {
    return toy("[8, 50]", "  - {name: qkv, kind: linear, channels: true, out_features: 72}\n" +
                              attention("heads: 4, scores: " + how));
  };
  const Model kept = model("kept"), again = model("recomputed");
  const LayerCosts of_kept = layer_costs(kept, 1), of_again = layer_costs(again, 1);
  CHECK(of_kept.forward->flops == products + 5 * scores);
  CHECK(of_again.forward->flops == products + 5 * scores);
  CHECK(of_kept.data_gradient->flops == 2 * products + 8 * scores);
  CHECK(of_again.data_gradient->flops == 2.5 * products + 8 * scores);
  // one kernel reads queries, keys and values and writes the result; backward it reads these and the result's
  // gradient, and writes three gradients
  CHECK(of_again.forward->values == 4 * n * c);
  CHECK(of_again.data_gradient->values == 8 * n * c);
  CHECK(of_again.forward->aside_values == 0);
  // kept: input 8 n, qkv 3 c n, scores; recomputed: input, qkv, result, a float a query and head
  CHECK(saved_bytes(kept, Framework::pytorch) == 4 * (8 * n + 3 * c * n + scores));
  CHECK(saved_bytes(again, Framework::pytorch) == 4 * (8 * n + 3 * c * n + c * n + heads * n));
  // half precision keeps the softmax in single precision, and a copy of it in half
  CHECK(saved_bytes(kept, Framework::pytorch, Precision::fp16) == 2 * (8 * n + 3 * c * n) + 6 * scores);
  const Model left = model("of_framework");
  CHECK(saved_bytes(left, Framework::pytorch) == saved_bytes(again, Framework::pytorch));
  CHECK(saved_bytes(left, Framework::pytorch1) == saved_bytes(kept, Framework::pytorch1));
}

TEST_CASE(
    "cosine attention keeps queries, keys and their norms, and reads them as torchvision's kernels do "
    "[closed form]") {
  // Swin V2 without shift: 2 x 2 windows of 4 x 4 pixels, 8 channels in 2 heads
  const double tokens = 64, c = 8, heads = 2, scores = heads * tokens * 16, normalized = 2 * c * tokens;
  const auto model = [](const std::string& keys) {
    return toy("[3, 8, 8]", "  - {name: qkv, kind: conv2d, out_channels: 24, kernel: 1}\n" +
                                attention("heads: 2, window: 4, position_bias: true" + keys));
  };
  const Model plain = model(""), cosine = model(", cosine: true, position_units: 16");
  const double image = 4 * 3 * 64, qkv = 4 * 3 * c * tokens, norms = 4 * 2 * heads * 2 * tokens;
  CHECK(saved_bytes(plain, Framework::pytorch) == image + qkv + 4 * scores);
  CHECK(saved_bytes(cosine, Framework::pytorch) == image + 2 * qkv + 8 * scores + norms);
  // under autocast: the softmax, its copy in half, and the scores before the factor; queries and keys in single
  // precision for their norms, and what is multiplied in half
  CHECK(saved_bytes(cosine, Framework::pytorch, Precision::fp16) ==
        2 * 3 * 64 + 2 * 3 * c * tokens + (4 + 2 + 2) * scores + norms + 4 * normalized + 2 * 3 * c * tokens);
  CHECK(cosine.layers[1].parameter_elements() == heads + 2 * 16 + 16 + 16 * heads);
  const LayerCosts of_plain = layer_costs(plain, 1), of_cosine = layer_costs(cosine, 1);
  // a norm reads each value, a quotient reads and writes it; without, queries alone are read and scaled
  CHECK(of_cosine.forward->aside_values - of_plain.forward->aside_values ==
        3 * normalized - 2 * c * tokens + 2 * scores);
  CHECK(of_cosine.data_gradient->aside_values - of_plain.data_gradient->aside_values ==
        21 * normalized - 2 * c * tokens + 2 * scores);
  CHECK(of_cosine.weight_gradient->values - of_plain.weight_gradient->values == 4 * scores);
  CHECK(of_cosine.forward->launches - of_plain.forward->launches == 16);
}

TEST_CASE("autocast keeps residual sums of a transformer in single precision, and those of a CNN in half") {
  const auto single_of = [](const std::string& name, Framework framework, Precision precision) {
    const Model model = model_from(name);
    const std::vector<bool> single = single_precision_outputs(model, framework, precision);
    std::map<std::string, int> kinds;
    for (std::size_t i = 0; i < single.size(); ++i)
      if (single[i]) ++kinds[std::string(kind_name(model.layers[i].kind))];
    return kinds;
  };
  const std::map<std::string, int> vit = single_of("vit_b_16", Framework::pytorch, Precision::fp16);
  CHECK(vit == std::map<std::string, int>{{"add", 24},
                                          {"class_token", 1},
                                          {"flatten", 1},
                                          {"layer_norm", 25},
                                          {"position_embedding", 1},
                                          {"slice", 1}});
  CHECK(single_of("vit_b_16", Framework::pytorch, Precision::tf32).empty());
  CHECK(single_of("vit_b_16", Framework::mxnet, Precision::fp16).empty());
  CHECK(single_of("resnet50", Framework::pytorch, Precision::fp16).empty());
}

TEST_CASE(
    "frozen layers have no gradients of weights and no updates, and nothing before them has gradients") {
  const Model model = toy("[3, 8, 8]",
                          "  - {name: a, kind: conv2d, out_channels: 4, kernel: 3, frozen: true}\n"
                          "  - {name: b, kind: frozen_batch_norm}\n"
                          "  - {name: c, kind: conv2d, out_channels: 4, kernel: 3}\n"
                          "  - {name: d, kind: conv2d, out_channels: 4, kernel: 3, frozen: true}\n");
  std::string names;
  const TrainingGraph graph = build_training_graph(model, {});
  for (const Operation& op : graph.operations) names += op.name + ' ';
  CHECK(names == "a.forward b.forward c.forward d.forward d.data_gradient c.weight_gradient c.update ");
  CHECK(graph.parameters.size() == 2);
}

TEST_CASE("parameters that are not trained stay in memory, without gradient and optimizer's state") {
  const auto bytes = [](bool frozen, Precision precision) {
    const Model model =
        toy("[3, 8, 8]", fmt::format("  - {{name: a, kind: conv2d, out_channels: 4, kernel: 3, frozen: "
                                     "{}}}\n  - {{name: b, kind: conv2d, out_channels: 5, kernel: 3}}\n",
                                     frozen));
    TrainingOptions options;
    options.precision = precision;
    options.optimizer = Optimizer::adam;
    return build_training_graph(model, options).resident_bytes();
  };
  const double a = 3 * 4 * 9 + 4, b = 4 * 5 * 9 + 5;
  for (const auto& [precision, element, weight] :
       {std::tuple{Precision::fp32, 4., 4.}, std::tuple{Precision::fp16, 2., 2. + 4}}) {
    const StateBytes some = bytes(true, precision), all = bytes(false, precision);
    CHECK(some[static_cast<std::size_t>(MemoryClass::weights)] == weight * (a + b));
    CHECK(all[static_cast<std::size_t>(MemoryClass::weights)] == weight * (a + b));
    CHECK(some[static_cast<std::size_t>(MemoryClass::gradients)] == element * b);
    CHECK(some[static_cast<std::size_t>(MemoryClass::optimizer)] == 8 * b);
  }
}

TEST_CASE("under autocast, what a normalization keeps of a residual sum has 4 bytes a value [closed form]") {
  // A block of tokens: the position's sum is in single precision, and the normalization keeps it. Of the
  // normalization's result, in single precision too, the linear layer keeps a copy in half. GELU and the second
  // linear layer keep what they read, in half. The last sum keeps nothing.
  const double n = 50, c = 24;
  const Model model = toy("[24, 50]",
                          "  - {name: first, kind: linear, channels: true, out_features: 24}\n"
                          "  - {name: position, kind: position_embedding}\n"
                          "  - {name: norm, kind: layer_norm}\n"
                          "  - {name: wide, kind: linear, channels: true, out_features: 96}\n"
                          "  - {name: gelu, kind: gelu}\n"
                          "  - {name: narrow, kind: linear, channels: true, out_features: 24}\n"
                          "  - {name: add, kind: add, inputs: [narrow, position]}\n");
  const double values = n * c * (1 + 1 + 1 + 4 + 4);  // the image first
  const double statistics = saved_bytes(model, Framework::pytorch) - 4 * values;
  CHECK(statistics >= 0);
  const double half = n * c * (2 + 4 + 2 + 2 * 4 + 2 * 4);
  CHECK(saved_bytes(model, Framework::pytorch, Precision::fp16) == half + statistics);
  CHECK(saved_bytes(model, Framework::pytorch1, Precision::bf16) == half + statistics);
  CHECK(saved_bytes(model, Framework::tensorflow, Precision::fp16) <= 2 * values + statistics);

  TrainingOptions options;
  options.precision = Precision::fp16;
  const TrainingGraph graph = build_training_graph(model, options);
  const TensorBytes bytes(graph);
  CHECK(bytes(image_input) == 2 * n * c);
  CHECK(bytes(0) == 2 * n * c);
  CHECK(bytes(1) == 4 * n * c);  // a message has the tensor, not the copy
  CHECK(bytes(2) == 4 * n * c);
  CHECK(bytes(3) == 2 * n * 4 * c);
  CHECK(bytes(6) == 4 * n * c);
}

TEST_CASE("losses of detectors move what PyTorch's kernels do, and keep what they keep") {
  // Counted on PyTorch 1.13 and torchvision 0.14.1, a value of the input and with its targets: what kernels
  // read and write, and what saved_tensors_hooks sees (with the input, but of cross entropy).
  struct Counted {
    const char* function;
    double forward, backward, saved;
  };
  for (const Counted& row : {Counted{"focal", 38, 43, 8}, Counted{"cross_entropy", 3, 5, 1},
                             Counted{"binary_cross_entropy", 2, 9, 2}, Counted{"smooth_l1", 2, 3, 2},
                             Counted{"squared_error", 2, 3, 2}}) {
    CAPTURE(row.function);
    const Model model = toy("[6, 10]", fmt::format("  - {{name: a, kind: linear, channels: true, "
                                                   "out_features: 20}}\n"
                                                   "  - {{name: x, kind: detection_loss, function: {}}}\n",
                                                   row.function));
    const LayerCosts costs = layer_costs(model, 1);
    CHECK(costs.forward->values == row.forward * 200);
    CHECK(costs.data_gradient->values == row.backward * 200);
    CHECK(saved_bytes(model, Framework::pytorch) == 4 * (60 + row.saved * 200));
  }
}

TEST_CASE("volumes have the shapes and multiply-adds of a loop over their places") {
  const Model model =
      toy("[2, 9, 8, 7]",
          "  - {name: a, kind: conv3d, out_channels: 4, kernel: [3, 2, 1], stride: [2, 1, 3], "
          "padding: [1, 0, 0]}\n"
          "  - {name: b, kind: max_pool3d, kernel: [2, 3, 1]}\n"
          "  - {name: c, kind: conv_transpose3d, out_channels: 3, kernel: 2, stride: 2}\n");
  // depth 9 + 2 by 3 in steps of 2: 5; height 8 by 2: 7; width 7 by 1 in steps of 3: 3
  CHECK(model.layers[0].output == Shape{4, 5, 7, 3});
  CHECK(model.layers[0].macs == 4 * 5 * 7 * 3 * (2 * 3 * 2 * 1));
  CHECK(model.layers[1].output == Shape{4, 2, 2, 3});
  CHECK(model.layers[2].output == Shape{3, 4, 4, 6});
  CHECK(model.layers[2].macs == 4 * 2 * 2 * 3 * (3 * 8));
  CHECK(
      layers_error("[2, 9, 8]", "  - {name: x, kind: conv3d, out_channels: 4, kernel: 3}\n") ==
      "test.yaml:4:5: layer 'x': conv3d needs an input [channels, depth, height, width], its input is [2, 9, "
      "8]");
}

TEST_CASE("regions and deformable windows have the sizes of their inputs") {
  const Model model = toy("[8, 16, 16]",
                          "  - {name: low, kind: max_pool, kernel: 2}\n"
                          "  - {name: x, kind: roi_align, inputs: [input, low], rois: 5, size: [7, 3]}\n"
                          "  - {name: offsets, kind: conv2d, inputs: [input], out_channels: 18, kernel: 3}\n"
                          "  - {name: y, kind: deform_conv2d, inputs: [input, offsets], out_channels: 4, "
                          "kernel: 3}\n");
  CHECK(model.layers[1].output == Shape{8, 35, 3});
  CHECK(model.layers[3].output == Shape{4, 14, 14});
  CHECK(model.layers[3].macs == 4 * 14 * 14 * 8 * 9);
  CHECK(
      layers_error("[8, 16, 16]",
                   "  - {name: x, kind: deform_conv2d, inputs: [input, input], out_channels: 4, kernel: 3}\n")
          .ends_with("the offsets of a 3 x 3 window are [18 or a multiple, 14, 14], got [8, 16, 16]"));
}

TEST_CASE("what was not measured is told once a kind") {
  CHECK(
      model_from("vit_b_16").warnings ==
      std::vector<std::string>{"attention that recomputes its scores (as pytorch does unless the layer says "
                               "`scores: kept`) is not measured; its time is that of matrix products"});
  CHECK(model_from("swin_t").warnings.empty());
  CHECK(model_from("resnet50").warnings.empty());
  CHECK(model_from("unet_3d").warnings.size() == 3);
}

TEST_CASE("attention refuses what it cannot read, in one line") {
  const auto failure = [](const std::string& input, const std::string& keys) {
    return layers_error(input, attention(keys));
  };
  const std::string at = "test.yaml:4:5: layer 'x': ";
  CHECK(failure("[10, 4]", "heads: 2") ==
        at + "the 10 channels of an input [10, 4] are not queries, keys and values of one size");
  CHECK(failure("[12, 4]", "heads: 3") == at + "4 channels cannot be divided into 3 heads");
  CHECK(failure("[12, 4]", "heads: 2, window: 2") ==
        at + "windows are of one input [channels, height, width], got [12, 4]");
  CHECK(failure("[12, 4]", "heads: 2, shift: true") ==
        at + "shift and position_bias are of windows; give window too");
  CHECK(failure("[12, 4]", "heads: 2, position_units: 8") ==
        at + "position_units are of position_bias; give position_bias too");
  CHECK(failure("[12, 4]", "heads: 2, cosine: true, scores: recomputed") ==
        at + "no kernel computes the scores of cosine attention again; give scores: kept, or leave it out");
}
