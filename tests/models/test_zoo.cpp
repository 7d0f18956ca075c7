// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/summary.h"
#include "models/training_graph.h"
#include "sim/base/data_path.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

/// Counted on torchvision 0.14's own modules, in training mode: parameters and their tensors, multiply-adds
/// of Conv2d and Linear by forward hooks (one 224x224 image; Inception 299x299), and the growth an image of
/// the unique storages that torch.autograd.graph.saved_tensors_hooks sees, less parameters and buffers. Where
/// eager PyTorch 2 keeps less than 1.13 did (the input of a mean over the last feature map), the map is taken
/// off: see `mean_input`.
struct Published {
  const char* name;
  std::int64_t parameters;
  std::size_t tensors;
  std::int64_t macs;
  double saved_bytes;
  double mean_input = 0;
};

constexpr Published published[] = {
    {"alexnet", 61100840, 16, 714188480, 3741184},
    {"vgg11", 132863336, 22, 7609090048, 48869376},
    {"vgg13", 133047848, 26, 11308466176, 68136960},
    {"vgg16", 138357544, 32, 15470264320, 73355264},
    {"vgg19", 143667240, 38, 19632062464, 78573568},
    {"vgg11_bn", 132868840, 38, 7609090048, 78573568},
    {"resnet18", 11689512, 62, 1814073344, 22179840},
    {"resnet34", 21797672, 110, 3663761408, 32215040},
    {"resnet50", 25557032, 161, 4089184256, 85909504},
    {"resnet101", 44549160, 314, 7801405440, 126853120},
    {"resnet152", 60192808, 467, 11513626624, 177430528},
    {"inception_v3", 27161264, 292, 5718899296, 98816556, 4. * 2048 * 8 * 8},
    {"googlenet", 13004888, 187, 1506748416, 48495488, 4. * 1024 * 7 * 7},
    {"resnext50_32x4d", 25028904, 161, 4230479872, 112201728},
    {"wide_resnet50_2", 68883240, 161, 11398021120, 112201728},
    {"vgg13_bn", 133053736, 46, 11308466176, 117108736},
    {"vgg16_bn", 138365992, 58, 15470264320, 127545344},
    {"vgg19_bn", 143678248, 70, 19632062464, 137981952},
    {"densenet121", 7978856, 364, 2834161664, 130361344},
    {"densenet161", 28681000, 484, 7727907072, 242772864},
    {"densenet169", 14149480, 508, 3359843328, 157308416},
    {"densenet201", 20013928, 604, 4291365888, 202969600},
    {"mobilenet_v2", 3504872, 158, 300774272, 78460416, 4. * 1280 * 7 * 7},
    {"squeezenet1_0", 1248424, 52, 818924576, 35767328},
    {"squeezenet1_1", 1235496, 52, 349151936, 21069728},
    {"shufflenet_v2_x1_0", 2278604, 170, 144907992, 20384960},
    {"mnasnet1_0", 4383312, 158, 314415872, 44265472},
    {"regnet_y_400mf", 4344144, 225, 401842848, 33630848},
    // less one float of stochastic depth for each of 9 and 17 blocks
    {"efficientnet_b0", 5288548, 213, 385814752, 88444932 - 9 * 4, 4. * 1280 * 7 * 7},
    {"mobilenet_v3_large", 5483032, 174, 216589760, 44302112, 4. * 960 * 7 * 7},
    {"mobilenet_v3_small", 2542856, 142, 56510400, 16282720, 4. * 576 * 7 * 7},
    {"shufflenet_v2_x0_5", 1366792, 170, 40476448, 11055360},
    {"shufflenet_v2_x1_5", 3503624, 170, 295759392, 28616960},
    {"shufflenet_v2_x2_0", 7393996, 170, 583253464, 38352064},
    {"wide_resnet101_2", 126886696, 314, 22753050624, 166793216},
    {"convnext_tiny", 28589128, 182, 4455531264, 109306404 - 17 * 4, 4. * 768 * 7 * 7},
};

}  // namespace

TEST_CASE("zoo models have torchvision's parameters, multiply-adds and saved activations") {
  for (const Published& row : published) {
    CAPTURE(row.name);
    const ModelSummary summary = summarize(model_from(row.name));
    CHECK(summary.name == row.name);
    CHECK(summary.parameters == row.parameters);
    CHECK(summary.parameter_tensors == row.tensors);
    CHECK(summary.forward_macs == row.macs);
    CHECK(summary.forward_flops == 2.0 * static_cast<double>(row.macs));
    CHECK(summary.saved_activation_bytes == row.saved_bytes - row.mean_input);
  }
}

TEST_CASE(
    "without their auxiliary heads inception_v3 and googlenet have the multiply-adds and parameters "
    "published") {
  // torchvision's documentation: Inception v3 5.713 G; GoogLeNet 1.498 G, 6,624,904 parameters.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> without;
  for (const char* name : {"inception_v3", "googlenet"})
    for (const LayerSummary& layer : summarize(model_from(name)).layers)
      if (!layer.name.starts_with("Aux") && !layer.name.starts_with("aux")) {
        without[name].first += layer.forward_macs;
        without[name].second += layer.parameters;
      }
  CHECK(without["inception_v3"].first == 5713216096);
  CHECK(without["inception_v3"].second == 23834568);
  CHECK(without["googlenet"].first == 1498376192);
  CHECK(without["googlenet"].second == 6624904);
}

TEST_CASE("the CIFAR-10 network of two convolutions takes its filters as parameters") {
  // 32 -5x5-> 28 -pool-> 14 -5x5-> 10 -pool-> 5.  K1 = 500, K2 = 1500:
  //   conv1 28*28*500*75 = 29,400,000   conv2 10*10*1500*500*25 = 1,875,000,000   fc 1500*25*10 = 375,000
  const ModelSummary wide = summarize(model_from("{name: cifar_two_conv, filters: [500, 1500]}"));
  CHECK(wide.forward_macs == 1904775000);
  // weights 500*75 + 1500*500*25 + 37500*10, biases 500 + 1500 + 10
  CHECK(wide.parameters == 37500 + 18750000 + 375000 + 2010);
  CHECK(summarize(model_from("cifar_two_conv")).forward_macs == 2940000 + 62500000 + 125000);
}

TEST_CASE("VGG-16 for CIFAR-10 is the convolutions and one layer of 512 to 10") {
  const ModelSummary summary = summarize(model_from("vgg16_cifar10"));
  CHECK(summary.parameters == 14714688 + 5130);  // VGG-16's convolutions; 512 * 10 + 10
}

TEST_CASE("families of the zoo have the parameters and multiply-adds of torchvision's documentation") {
  struct Documented {
    const char* name;
    std::int64_t parameters;
    double giga_macs;  ///< its "GFLOPS", rounded
  };
  constexpr Documented documented[] = {
      {"convnext_small", 50223688, 8.684},     {"convnext_base", 88591464, 15.355},
      {"convnext_large", 197767336, 34.361},   {"efficientnet_v2_s", 21458488, 8.366},
      {"efficientnet_v2_m", 54139356, 24.582}, {"efficientnet_v2_l", 118515272, 56.08},
      {"mnasnet0_5", 2218512, 0.104},          {"mnasnet0_75", 3170208, 0.215},
      {"mnasnet1_3", 6282256, 0.526},          {"resnext101_64x4d", 83455272, 15.46},
      {"regnet_x_400mf", 5495976, 0.414},      {"regnet_x_800mf", 7259656, 0.8},
      {"regnet_x_1_6gf", 9190136, 1.603},      {"regnet_x_3_2gf", 15296552, 3.177},
      {"regnet_x_8gf", 39572648, 7.995},       {"regnet_x_16gf", 54278536, 15.941},
      {"regnet_x_32gf", 107811560, 31.736},    {"regnet_y_400mf", 4344144, 0.402},
      {"regnet_y_800mf", 6432512, 0.834},      {"regnet_y_1_6gf", 11202430, 1.612},
      {"regnet_y_3_2gf", 19436338, 3.176},     {"regnet_y_8gf", 39381472, 8.473},
      {"regnet_y_16gf", 83590140, 15.912},     {"regnet_y_32gf", 145046770, 32.28},
      {"regnet_y_128gf", 644812894, 127.518},
  };
  for (const Documented& row : documented) {
    CAPTURE(row.name);
    const ModelSummary summary = summarize(model_from(row.name));
    CHECK(summary.name == row.name);
    CHECK(summary.parameters == row.parameters);
    CHECK(std::abs(static_cast<double>(summary.forward_macs) / 1e9 - row.giga_macs) <= 0.0005001);
  }
}

TEST_CASE("networks of timm and of papers have the parameters that are published for them") {
  // timm's results/model_metadata-in1k.csv and results/benchmark-infer-amp-nhwc-pt113-cu117-rtx3090.csv, in millions with
  // two decimals. Xception: Chollet, arXiv:1610.02357, table 3. MobileNet: Howard et al., arXiv:1704.04861, tables 6
  // and 8, 4.2, 2.6, 1.3 and 0.5 million (timm: 4.23).
  constexpr std::pair<const char*, double> published_millions[] = {{"resnext101_32x4d", 44.18},
                                                                   {"resnext101_32x16d", 194.03},
                                                                   {"se_resnet50", 28.09},
                                                                   {"se_resnet101", 49.33},
                                                                   {"se_resnet152", 66.82},
                                                                   {"se_resnext50_32x4d", 27.56},
                                                                   {"se_resnext101_32x4d", 48.96},
                                                                   {"se_resnext101_64x4d", 88.23},
                                                                   {"resnet50c", 25.58},
                                                                   {"resnet152c", 60.21},
                                                                   {"resnet50d", 25.58},
                                                                   {"resnet101d", 44.57},
                                                                   {"resnet152d", 60.21},
                                                                   {"resnet50_v2", 25.55},
                                                                   {"resnet101_v2", 44.54},
                                                                   {"resnet152_v2", 60.19},
                                                                   {"darknet53", 41.61},
                                                                   {"mobilenet_v1", 4.23},
                                                                   {"mixer_s_16", 18.53},
                                                                   {"mixer_s_32", 19.10},
                                                                   {"mixer_b_16", 59.88},
                                                                   {"mixer_b_32", 60.29},
                                                                   {"mixer_l_16", 208.20},
                                                                   {"mixer_l_32", 206.94},
                                                                   {"vit_s_32", 22.88},
                                                                   {"vit_b_8", 86.58},
                                                                   {"vit_l_14", 304.20},
                                                                   {"vit_g_14", 1012.61},
                                                                   {"deit3_small", 22.06},
                                                                   {"deit3_base", 86.59},
                                                                   {"deit3_large", 304.37},
                                                                   {"swin_l", 196.53},
                                                                   {"convnext_xlarge", 350.20}};
  for (const auto& [name, millions] : published_millions) {
    CAPTURE(name);
    CHECK(std::round(static_cast<double>(summarize(model_from(name)).parameters) / 1e4) ==
          std::round(millions * 100));
  }
  // windows of 12 for images of 384 pixels: timm's swin_base_ and swin_large_patch4_window12_384
  const auto wide_windows = [](const char* name) {
    return static_cast<double>(
        summarize(model_from(fmt::format("{{name: {}, input: [3, 384, 384], window: 12}}", name)))
            .parameters);
  };
  CHECK(std::round(wide_windows("swin_b") / 1e4) == 8790);
  CHECK(std::round(wide_windows("swin_l") / 1e4) == 19674);
  CHECK(summarize(model_from("xception")).parameters == 22855952);
  for (const auto& [width, millions] : {std::pair{24, 2.6}, {16, 1.3}, {8, 0.5}})
    CHECK(std::round(
              static_cast<double>(
                  summarize(model_from(fmt::format("{{name: mobilenet_v1, width: {}}}", width))).parameters) /
              1e5) == std::round(millions * 10));
}

TEST_CASE("segmentation networks have torchvision's parameters, multiply-adds and saved activations") {
  // Counted in the same way at 224 pixels, with the auxiliary head; the documentation's 152.717 and 178.722
  // GFLOPS of ResNet-50 are at 520 pixels. PyTorch 1.13 kept the input of DeepLab's mean over the last map.
  struct Counted {
    const char* name;
    std::int64_t parameters, macs;
    double saved_bytes, mean_input;
  };
  constexpr double last_map = 4. * 2048 * 28 * 28;
  constexpr Counted counted[] = {{"fcn_resnet50", 35322218, 28338401280, 199700480, 0},
                                 {"fcn_resnet101", 54314346, 43187286016, 363474944, 0},
                                 {"deeplabv3_resnet50", 42004074, 33164451840, 208541696, last_map},
                                 {"deeplabv3_resnet101", 60996202, 48013336576, 372316160, last_map}};
  for (const Counted& row : counted) {
    CAPTURE(row.name);
    const ModelSummary summary = summarize(
        model_from(fmt::format("{{name: {}, input: [3, 224, 224], height: 224, width: 224}}", row.name)));
    CHECK(summary.parameters == row.parameters);
    CHECK(summary.forward_macs == row.macs);
    CHECK(summary.saved_activation_bytes == row.saved_bytes);
  }
  CHECK(summarize(model_from("deeplabv3_resnet50")).forward_macs == 178721945088);
}

TEST_CASE("EfficientNet B1 to B7 have torchvision's parameters") {
  constexpr std::pair<std::int64_t, std::size_t> counted[] = {
      {7794184, 301},  {9109994, 301},  {12233232, 340}, {19341616, 418},
      {30389784, 506}, {43040704, 584}, {66347960, 711}};
  for (std::size_t i = 0; i < std::size(counted); ++i) {
    const ModelSummary summary = summarize(model_from("efficientnet_b" + std::to_string(i + 1)));
    CHECK(summary.parameters == counted[i].first);
    CHECK(summary.parameter_tensors == counted[i].second);
  }
}

TEST_CASE(
    "U-Net, 3D U-Net, SSD300, Inception v4, LeNet-5 and DCGAN are those of their papers and reference "
    "codes") {
  const ModelSummary unet = summarize(model_from("unet"));
  CHECK(unet.layers.back().output_shape == Shape{2, 388, 388});  // figure 1
  CHECK(unet.parameters == 31030658);                            // the figure's 23 convolutions, with biases
  // 19,069,955 parameters, the paper's section 2: those of convolutions and their biases
  const ModelSummary volumes = summarize(model_from("unet_3d"));
  CHECK(volumes.layers.back().output_shape == Shape{3, 28, 44, 44});  // figure 2
  CHECK(volumes.parameters == 19069955);
  // torchvision's ssd300_vgg16: 35,641,826 parameters in 71 tensors; 8732 boxes (the paper's section 3.2)
  const ModelSummary ssd = summarize(model_from("ssd300_vgg16"));
  CHECK(ssd.parameters == 35641826);
  CHECK(ssd.parameter_tensors == 71);
  std::int64_t boxes = 0;
  for (const LayerSummary& layer : ssd.layers)
    if (layer.name.starts_with("boxes")) boxes += elements(layer.output_shape) / 4;
  CHECK(boxes == 8732);
  // timm's inception_v4: 42.68 M parameters, 12.28 G multiply-adds by a count that takes normalizations too
  const ModelSummary inception = summarize(model_from("inception_v4"));
  CHECK(inception.parameters == 42679816);
  CHECK(inception.forward_macs == 12253974624);
  // LeCun et al.: 61,706 with a full C3 and a linear output: 156 + 2416 + 48120 + 10164 + 850
  CHECK(summarize(model_from("lenet5")).parameters == 61706);
  // PyTorch's examples/dcgan, nz = 100, ngf = ndf = 64
  CHECK(summarize(model_from("dcgan_generator")).parameters == 3576704);
  CHECK(summarize(model_from("dcgan_discriminator")).parameters == 2765568);
  // the pair: each network once, the discriminator run three times
  const ModelSummary pair = summarize(model_from("dcgan"));
  CHECK(pair.parameters == 3576704 + 2765568);
  CHECK(pair.forward_macs == summarize(model_from("dcgan_generator")).forward_macs +
                                 3 * summarize(model_from("dcgan_discriminator")).forward_macs);
}

TEST_CASE("wide residual networks have the depth and width of their names") {
  // the authors' code: WRN-28-10 has 36,479,194 parameters and WRN-16-2 691,674
  CHECK(summarize(model_from("wrn_28_10")).parameters == 36479194);
  CHECK(summarize(model_from("wrn_16_2")).parameters == 691674);
  const std::string error = error_of("wrn_101_14");
  CHECK(error.starts_with("test.yaml:1:1: model: cannot build 'wrn_101_14' as asked for: "));
  CHECK(
      error.ends_with("expression '$((depth - 4)/6 - 1)' divides 97 by 6, which leaves a remainder; "
                      "wrn_100_14 can be built"));
  CHECK(error_of("wrn_100_14").empty());
  CHECK(error_of("wrn_17_1").ends_with("; wrn_16_1 can be built"));
}

TEST_CASE("a zoo model takes another input and other classes") {
  const Model model = model_from("{name: resnet18, input: [3, 64, 64], classes: 10}");
  CHECK(model.input == Shape{3, 64, 64});
  CHECK(model.layers.back().output == Shape{10});
  CHECK(summarize(model).parameters == 11689512 - 990 * 513);
}

TEST_CASE(
    "a network of the zoo is the same on images of its own size, whether they are asked for or not [law]") {
  for (std::string name : zoo_names()) {
    if (name == "wrn_DEPTH_WIDTH") name = "wrn_28_10";
    CAPTURE(name);
    const Model model = model_from(name);
    const ModelSummary own = summarize(model);
    const ModelSummary asked =
        summarize(model_from(fmt::format("{{name: {}, input: [{}]}}", name, fmt::join(model.input, ", "))));
    CHECK(asked.parameters == own.parameters);
    CHECK(asked.forward_macs == own.forward_macs);
  }
}

TEST_CASE("every zoo file reads, and has a loss") {
  for (std::string name : zoo_names()) {
    if (name == "wrn_DEPTH_WIDTH") name = "wrn_28_10";
    CAPTURE(name);
    const Model model = model_from(name);
    // a generator's loss is the discriminator's, and torchvision's SSD is without; other detectors and networks
    // of diffusion have losses as layers
    const bool has_layers = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
      return std::holds_alternative<DetectionLoss>(layer.kind);
    });
    CHECK(model.cross_entropy_loss == (!name.starts_with("dcgan") && name != "ssd300_vgg16" && !has_layers));
    CHECK(summarize(model).parameters > 0);
  }
}

TEST_CASE("models are found however their names are written, and keep the zoo's names") {
  for (const auto& [written, name] : {std::pair{"ResNet50", "resnet50"},
                                      {"resnet-50", "resnet50"},
                                      {"VGG-16", "vgg16"},
                                      {"Inception-V3", "inception_v3"},
                                      {"WRN-28-10", "wrn_28_10"},
                                      {"MobileNetV2", "mobilenet_v2"},
                                      {"Mask-RCNN-ResNet50-FPN", "maskrcnn_resnet50_fpn"},
                                      {"vit_base_patch16_224", "vit_b_16"},
                                      {"vit_small_patch16_224", "deit_small"},
                                      {"deit_small_patch16_224", "deit_small"},
                                      {"swin_tiny_patch4_window7_224", "swin_t"},
                                      {"swin_base_patch4_window7_224", "swin_b"},
                                      {"swinv2_tiny_window8_256", "swin_v2_t"},
                                      {"vit_giant_patch14_224", "vit_g_14"},
                                      {"deit3_base_patch16_224", "deit3_base"},
                                      {"mixer_b16_224", "mixer_b_16"},
                                      {"SE-ResNeXt101-32x4d", "se_resnext101_32x4d"},
                                      {"resnetv2_50", "resnet50_v2"},
                                      {"resnet101_v1d", "resnet101d"},
                                      {"mobilenet1.0", "mobilenet_v1"}}) {
    const Model model = model_from(written);
    CHECK(model.name == name);
    CHECK(summarize(model).parameters == summarize(model_from(name)).parameters);
  }
  CHECK(error_of("resnet").find("(did you mean one of deeplabv3_resnet101, deeplabv3_resnet50, ") !=
        std::string::npos);
  CHECK(error_of("transformer").find("; the zoo has: alexnet, ") != std::string::npos);
}

TEST_CASE("an unknown model name gets a suggestion or the list") {
  const std::string error = error_of("resnet51");
  CHECK(error.starts_with(
      "test.yaml:1:1: model: unknown model 'resnet51' (did you mean 'resnet50'?); `convoy show models` lists "
      "them"));
  CHECK(error.ends_with(". A model of your own needs `layers`"));
  CHECK(error_of("{name: wrn_DEPTH_WIDTH}")
            .starts_with("test.yaml:1:8: model.name: unknown model 'wrn_DEPTH_WIDTH'"));
}

TEST_CASE("what a zoo model is given must be of the parameter's kind") {
  CHECK(error_of("{name: resnet18, classes: 0}") ==
        "test.yaml:1:27: model.classes: 0 is out of range: between 1 and 1000000000 is allowed");
  CHECK(error_of("{name: cifar_two_conv, filters: [50]}") ==
        "test.yaml:1:33: model.filters: expected a list of 2 whole numbers such as [50, 500], found a list "
        "of 1");
  CHECK(error_of("{name: cifar_two_conv, filters: 50}") ==
        "test.yaml:1:33: model.filters: expected a list of 2 whole numbers such as [50, 500], found '50'");
  CHECK(error_of("{name: resnet18, clases: 10}") ==
        "test.yaml:1:18: model.clases: unknown key (did you mean 'classes'?); known here: classes, input, "
        "name");
  const std::string small = error_of("{name: vgg16, input: [3, 16, 16]}");
  CHECK(small.starts_with("test.yaml:1:8: model.name: cannot build 'vgg16' as asked for: "));
  CHECK(small.ends_with(
      "layer 'stage5.pool': the kernel spans 2 in height, the padded input has 1; input: [3, 32, 32] "
      "can be built"));
  CHECK(error_of("{name: vgg16, input: [3, 32, 32]}").empty());
  CHECK(error_of("{name: alexnet, input: [3, 32, 64]}").ends_with("; input: [3, 64, 64] can be built"));
}
