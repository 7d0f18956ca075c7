// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "models/layer_profile.h"
#include "models/training_graph.h"
#include "sim/base/data_path.h"
#include "sim/base/yaml_node.h"
#include "tests/support/approx.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

const std::string header = "layer,inputs,batch,forward_ms,backward_ms,activation_bytes,parameter_bytes\n";
const std::string image = "input,,2,,,80,\n";

Model model_of(const std::string& rows) {
  const WorkingFile file("test_profile.csv", header + rows);
  return profiled_model(read_layer_profile(file.name), "net");
}

std::string profile_error(const std::string& rows) {
  try {
    model_of(rows);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

double total_ms(const std::string& name, Phase phase, double images) {
  const Model model = profiled_model(
      read_layer_profile(data_path("results/published") + "/pipedream/" + name + ".csv"), name);
  double seconds = 0;
  for (const Operation& op : build_training_graph(model, {}).operations)
    if ((op.phase == Phase::forward) == (phase == Phase::forward) && op.phase != Phase::update)
      seconds += op.work.seconds_per_image * images;
  return 1000 * seconds;
}

}  // namespace

TEST_CASE("a profile becomes a network of custom layers: values and times of one image") {
  const Model model = model_of(image + "a,,2,3,5,160,400\nb,,2,1,0,16,\nc,a b,4,2,6,32,8\n");
  CHECK(model.name == "net");
  CHECK(model.input == Shape{10});
  REQUIRE(model.layers.size() == 3);
  CHECK(model.layers[0].inputs == std::vector<LayerIndex>{image_input});
  CHECK(model.layers[1].inputs == std::vector<LayerIndex>{0});
  CHECK(model.layers[2].inputs == std::vector<LayerIndex>{0, 1});
  CHECK(model.layers[0].output == Shape{20});  // 160 bytes, 2 images, 4 bytes a value
  CHECK(model.layers[2].output == Shape{2});   // its own batch is 4
  CHECK(model.layers[0].parameter_elements() == 100);
  const auto& custom = std::get<Custom>(model.layers[0].kind);
  CHECK(custom.forward_s == 1.5e-3);
  CHECK(custom.backward_s == 2.5e-3);
}

TEST_CASE("what a profile lacks, or says wrongly, is an error at its place") {
  const std::string file = "test_profile.csv";
  CHECK(profile_error("") == file + ": holds no layer");
  CHECK(profile_error("a,,2,3,5,160,\n") ==
        file +
            ": a row 'input' with the batch and activation_bytes of the images is missing; a model needs it");
  CHECK(profile_error(image + "a,,2,3,5,,\n") ==
        file + ":3:1: activation_bytes of 'a' is missing; a model needs it");
  CHECK(
      profile_error(image + "a,,3,3,5,160,\n") ==
      file +
          ":3:1: activation_bytes: 160 bytes of 'a' are no whole number of fp32 values for each of 3 images");
  CHECK(profile_error(image + "a,,2,3,5,160,3\n") ==
        file + ":3:1: parameter_bytes: 3 bytes of 'a' are no whole number of fp32 values");
  CHECK(profile_error(image + "a,b,2,3,5,160,\n") ==
        file + ":3:1: inputs: 'a' reads 'b', and no row before it has that name");
  CHECK(profile_error(image + "a,input input,2,3,5,160,\n") ==
        file + ":3:1: inputs: 'a' reads 'input' twice");
  CHECK(profile_error(image + "a,,2,3,5,160,\na,,2,3,5,160,\n") ==
        file + ":4:1: layer: 'a' is on line 3 already");
  CHECK(profile_error(image + "a,,0,3,5,160,\n") ==
        file + ":3:4: batch: expected a number above zero, found '0'");
  CHECK(profile_error(image + "a,,2.5,3,5,160,\n") ==
        file + ":3:4: batch: expected a whole number, found '2.5'");
  CHECK(profile_error(image + "a,,2,-3,5,160,\n") ==
        file + ":3:6: forward_ms: expected a number that is not below zero, found '-3'");
  CHECK(profile_error(image + "a b,,2,3,5,160,\n") ==
        file + ":3:1: layer: expected a name without spaces, found 'a b'");
  CHECK(profile_error("input,,2,1,,80,\na,,2,3,5,160,\n") ==
        file + ":2:10: forward_ms: 'input' stands for the images and has only activation_bytes");
}

TEST_CASE("PipeDream's profiles carry the sums that their sources have") {
  // Sums over all nodes but the input's, counted apart from the files as they were published.
  CHECK(total_ms("vgg16", Phase::forward, 128) == approx(233.902).epsilon(1e-9));
  CHECK(total_ms("vgg16", Phase::data_gradient, 128) == approx(438.633).epsilon(1e-9));
  const Model vgg = read_model(
      parse_yaml("{profile: " + data_path("results/published") + "/pipedream/vgg16.csv}", "model"));
  CHECK(vgg.name == "vgg16");
  std::int64_t parameters = 0;
  for (const Layer& layer : vgg.layers) parameters += layer.parameter_elements();
  CHECK(parameters == 138'357'544);  // torchvision's vgg16
}

TEST_CASE("ResNet-50's profile has its shortcuts, and torchvision's parameters") {
  const Model model = read_model(parse_yaml(
      "{profile: " + data_path("results/published") + "/pipedream/resnet50.csv, name: net}", "model"));
  std::int64_t parameters = 0;
  int sums = 0;
  for (const Layer& layer : model.layers) {
    parameters += layer.parameter_elements();
    if (layer.inputs.size() == 2) ++sums;
  }
  CHECK(model.name == "net");
  CHECK(parameters == 25'557'032);
  CHECK(sums == 16);  // one a block
}
