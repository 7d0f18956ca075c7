// SPDX-License-Identifier: MIT
// Networks of detection, of volumes and of diffusion.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "models/summary.h"
#include "models/training_graph.h"
#include "tests/models/model_text.h"

using namespace convoy;

namespace {

/// Bytes an image that are saved for the backward pass, without what the losses keep.
double saved_without_losses(const Model& model) {
  const TrainingGraph graph = build_training_graph(model, {});
  std::vector<bool> of_loss(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (std::holds_alternative<DetectionLoss>(model.layers[i].kind)) {
      of_loss[i] = true;
      for (const LayerIndex input : model.layers[i].inputs) of_loss[static_cast<std::size_t>(input)] = true;
    }
  double bytes = 0;
  for (const Buffer& buffer : graph.buffers)
    if (buffer.saved && (buffer.role == BufferRole::image || !of_loss[graph.operations[buffer.born].layer]))
      bytes += buffer.bytes_per_image;
  return bytes;
}

std::string at(const std::string& name, int side) {
  return fmt::format("{{name: {0}, input: [3, {1}, {1}]}}", name, side);
}

std::int64_t macs_of(const ModelSummary& summary, const std::string& kind) {
  std::int64_t macs = 0;
  for (const LayerSummary& layer : summary.layers)
    if (layer.kind == kind) macs += layer.forward_macs;
  return macs;
}

}  // namespace

TEST_CASE("detectors have torchvision's parameters, multiply-adds and saved activations") {
  // Counted on torchvision 0.14.1's own modules in training mode, with fixed batch normalization and the stem and
  // the first stage frozen (`_resnet_fpn_extractor(net, 3)`): parameters and their tensors; the multiply-adds at 800
  // pixels that a TorchDispatchMode sees of backbone, pyramid and heads (Faster R-CNN's on 512 regions 7,352,090,624, Mask
  // R-CNN's on 128 besides 68,104,486,912); and at 224 pixels the growth an image of the unique storages that
  // torch.autograd.graph.saved_tensors_hooks sees, less parameters and buffers, without the losses.
  struct Counted {
    const char* name;
    std::int64_t parameters;
    std::size_t tensors;
    std::int64_t macs;
    double saved_bytes;  ///< 0: not counted
  };
  constexpr Counted counted[] = {
      {"retinanet_resnet50_fpn", 34014999, 89, 151540437248, 34721792},
      {"retinanet_resnext50_32x4d_fpn", 37060652, 89, 201208394752, 43051008},
      {"fasterrcnn_resnet50_fpn", 41755286, 83, 120020169216 + 7352090624, 0},
      {"maskrcnn_resnet50_fpn", 44401393, 95, 120020169216 + 7352090624 + 68104486912, 0},
  };
  for (const Counted& row : counted) {
    CAPTURE(row.name);
    const ModelSummary summary = summarize(model_from(row.name));
    CHECK(summary.parameters == row.parameters);
    CHECK(summary.parameter_tensors == row.tensors);
    CHECK(summary.forward_macs == row.macs);
    if (row.saved_bytes > 0) CHECK(saved_without_losses(model_from(at(row.name, 224))) == row.saved_bytes);
  }
  // torchvision's documentation: 151.54 GFLOPS
  CHECK(std::abs(summarize(model_from("retinanet_resnet50_fpn")).forward_macs / 1e9 - 151.54) <= 0.005);
}

TEST_CASE("detectors keep what is frozen out of the backward pass") {
  // 33,792,599 and 36,849,004 of the parameters have requires_grad in torchvision
  for (const auto& [name, trained] :
       {std::pair{"retinanet_resnet50_fpn", 33792599.}, {"retinanet_resnext50_32x4d_fpn", 36849004.}}) {
    const TrainingGraph graph = build_training_graph(model_from(name), {});
    CHECK(graph.gradient_bytes() == 4 * trained);
    for (const Operation& op : graph.operations) {
      const std::string& layer = graph.model.layers[op.layer].name;
      if (layer.starts_with("stem") || layer.starts_with("layer1")) CHECK(op.phase == Phase::forward);
    }
  }
}

TEST_CASE("a detector's maps are those of its image, whatever its size") {
  const ModelSummary summary = summarize(model_from("{name: maskrcnn_resnet50_fpn, input: [3, 427, 640]}"));
  const auto output = [&](const std::string& name) {
    for (const LayerSummary& layer : summary.layers)
      if (layer.name == name) return layer.output_shape;
    return Shape{};
  };
  CHECK(output("p2") == Shape{256, 107, 160});
  CHECK(output("p3") == Shape{256, 54, 80});
  CHECK(output("p4") == Shape{256, 27, 40});
  CHECK(output("p5") == Shape{256, 14, 20});
  CHECK(output("p6") == Shape{256, 7, 10});
  CHECK(output("box_regions") == Shape{256, 512 * 7, 7});
  CHECK(output("classes") == Shape{91, 512});
  CHECK(output("masks.masks") == Shape{91, 128 * 28, 28});
  const auto regions = [](int rois) {
    return summarize(model_from(fmt::format("{{name: fasterrcnn_resnet50_fpn, rois: {}}}", rois)))
        .forward_macs;
  };
  // a region more: two layers of 12544 and 1024 inputs, classes and boxes
  CHECK(regions(513) - regions(512) == 12544 * 1024 + 1024 * 1024 + 1024 * 5 * 91);
}

TEST_CASE("SSD has the parameters, multiply-adds and saved activations of its reference codes") {
  // Counted as above at 300 pixels. Of the first two the modules were not the codes' own but written anew, and their
  // parameters and multiply-adds were then counted a second time, layer by layer, after the codes: MLPerf's
  // (mlcommons/training@0a18eb3a, single_stage_detector/ssd/ssd300.py; its ResNet-34 as MosaicML's Composer has taken
  // it over, with stride 1 in the third stage) and NVIDIA's (DeepLearningExamples@04099020,
  // PyTorch/Detection/SSD/ssd/model.py). Saved bytes are those of the rewritten modules. The third is torchvision's
  // (documentation: 34.86 GFLOPS). 8732 boxes: arXiv:1512.02325, section 3.2.
  struct Counted {
    const char* name;
    std::int64_t parameters;
    std::size_t tensors;
    std::int64_t macs;
    double saved_bytes;  ///< 0: not counted
  };
  constexpr Counted counted[] = {{"ssd300_resnet34", 19972534, 131, 15862078720, 86631872},
                                 {"ssd300_resnet50", 22894902, 183, 20150906112, 235418048},
                                 {"ssd300_vgg16", 35641826, 71, 34858153472, 0}};
  for (const Counted& row : counted) {
    CAPTURE(row.name);
    const ModelSummary summary = summarize(model_from(row.name));
    CHECK(summary.parameters == row.parameters);
    CHECK(summary.parameter_tensors == row.tensors);
    CHECK(summary.forward_macs == row.macs);
    if (row.saved_bytes > 0) CHECK(saved_without_losses(model_from(row.name)) == row.saved_bytes);
    for (const LayerSummary& layer : summary.layers)
      if (layer.name == "boxes") CHECK(layer.output_shape == Shape{4 * 8732});
  }
}

TEST_CASE("MLPerf's 3D U-Net is that of its reference code") {
  // Counted as above on the reference's modules (mlcommons/training@2c05bba0, image_segmentation/pytorch/model)
  const ModelSummary summary = summarize(model_from("unet_3d_kits19"));
  CHECK(summary.parameters == 31190243);
  CHECK(summary.parameter_tensors == 78);
  CHECK(summary.layers.back().output_shape == Shape{3, 128, 128, 128});
  const ModelSummary small = summarize(model_from("{name: unet_3d_kits19, input: [1, 64, 64, 64]}"));
  CHECK(small.forward_macs == 59662336000);
  CHECK(summary.forward_macs == 8 * small.forward_macs);
  // PyTorch's instance normalization keeps its weights once an image, 3840 channels of all layers
  CHECK(small.saved_activation_bytes == 447599616 - 4 * 3840);
}

TEST_CASE("U-Nets of diffusion have the parameters that are published") {
  // CompVis's Stable Diffusion v1: 859,520,964 (diffusers' UNet2DConditionModel of runwayml/stable-diffusion-v1-5)
  const ModelSummary latent = summarize(model_from("stable_diffusion_v1_unet"));
  CHECK(latent.parameters == 859520964);
  CHECK(latent.parameter_tensors == 686);
  // 16 blocks of attention, each of the map's own tokens and of 77 of the text, counted pair by pair
  std::int64_t pairs = 0;
  for (const auto& [blocks, side, channels] :
       {std::array{5, 64, 320}, {5, 32, 640}, {5, 16, 1280}, {1, 8, 1280}})
    pairs += std::int64_t{2} * blocks * side * side * (side * side + 77) * channels;
  CHECK(macs_of(latent, "attention") == pairs);
  // arXiv:2006.11239, appendix B: 35.7 million
  const ModelSummary ddpm = summarize(model_from("ddpm_cifar10"));
  CHECK(std::lround(static_cast<double>(ddpm.parameters) / 1e5) == 357);
  CHECK(ddpm.parameters == 35746307);
  for (const LayerSummary& layer : ddpm.layers)  // at 16 by 16 places, and in the middle
    if (layer.kind == "attention")
      CHECK((layer.output_shape == Shape{256, 16, 16} || layer.output_shape == Shape{256, 4, 4}));
}

TEST_CASE("a text of another length changes attention alone") {
  const ModelSummary once = summarize(model_from("stable_diffusion_v1_unet")),
                     twice = summarize(model_from("{name: stable_diffusion_v1_unet, tokens: 154}"));
  CHECK(once.parameters == twice.parameters);
  CHECK(twice.forward_macs > once.forward_macs);
}
