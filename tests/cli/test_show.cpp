// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

TEST_CASE("show: every subject lists what there is, and each thing of it in detail, as text and as JSON") {
  const Workplace place;
  for (const char* subject : {"models", "devices", "servers", "clusters", "transports", "strategies"}) {
    CAPTURE(subject);
    const Finished text = place.convoy({"show", subject});
    CHECK(text.exit_code == 0);
    CHECK(text.err.empty());
    const Finished list = place.convoy({"show", subject, "--json"});
    CHECK(list.exit_code == 0);
    const json names = json::parse(list.out);
    CHECK(names.size() > 1);
    for (const std::string name : names) {
      CAPTURE(name);
      CHECK(text.out.find(name) != std::string::npos);
      if (name.find("DEPTH") != std::string::npos) continue;  // a pattern, not a model
      CHECK(place.convoy({"show", subject, name}).exit_code == 0);
      const Finished one = place.convoy({"show", subject, name, "--json"});
      CHECK(one.exit_code == 0);
      CHECK(json::parse(one.out).is_object());
    }
  }
}

TEST_CASE("show models: resnet50 as torchvision counts it") {
  const Workplace place;
  const json model = json::parse(place.convoy({"show", "models", "resnet50", "--json"}).out);
  CHECK(model["name"] == "resnet50");
  CHECK(model["parameters"] == 25557032);      // torchvision's documentation, ResNet50_Weights
  CHECK(model["parameter_tensors"] == 161);    // 53 convolutions, 53 x 2 of batch norms, 2 of the classifier
  CHECK(model["forward_macs"] == 4089184256);  // 4.09 G in torchvision's table
  CHECK(model["forward_flops"] == 2.0 * 4089184256);
  CHECK(model["layers"][0].size() == 6);
  double saved = 4.0 * 3 * 224 * 224;  // the image
  for (const json& layer : model["layers"]) saved += layer["saved_bytes"].get<double>();
  CHECK(saved == model["saved_activation_bytes"]);
  CHECK(model["layers"][0]["output_shape"] == json::array({64, 112, 112}));
}

TEST_CASE("show models: the times of the layers on a device add up to the step") {
  const Workplace place;
  const json model = json::parse(
      place.convoy({"show", "models", "resnet18", "--json", "--device", "k80", "--batch", "16"}).out);
  CHECK(model["device"] == "k80");
  CHECK(model["batch"] == 16);
  CHECK(model["precision"] == "fp32");
  double time_s = 0, share = 0;
  for (const json& layer : model["layers"]) {
    time_s += layer["time_s"].get<double>();
    share += layer["time_share"].get<double>();
  }
  CHECK(std::abs(time_s / model["step_time_s"].get<double>() - 1) < 1e-9);
  CHECK(std::abs(share - 1) < 1e-9);
  CHECK(place.convoy({"show", "models", "resnet18", "--device", "k80", "--precision", "fp8"}).err ==
        "show models:1:1: --precision: unknown precision 'fp8' (did you mean 'fp32'?); known: fp32, tf32, "
        "fp16, bf16\n");
  CHECK(place.convoy({"show", "devices", "--dot"}).err ==
        "show devices:1:1: --dot and --device show one model: convoy show models NAME\n");
}

TEST_CASE("show models: a drawing has a node a layer and an arrow an input") {
  const Workplace place;
  place.file("net.yaml",
             "name: net\ninput: [3, 8, 8]\nlayers:\n  - {name: a, kind: relu}\n  - {name: b, kind: relu}\n"
             "  - {name: 's\"x', kind: add, inputs: [a, b]}\n");
  CHECK(place.convoy({"show", "models", "net.yaml", "--dot"}).out ==
        "digraph \"net\" {\n  node [shape=box, fontname=\"sans-serif\"];\n  input [label=\"image\\n[3, 8, "
        "8]\"];\n"
        "  l0 [label=\"a\\nrelu [3, 8, 8]\"];\n  input -> l0;\n"
        "  l1 [label=\"b\\nrelu [3, 8, 8]\"];\n  l0 -> l1;\n"
        "  l2 [label=\"s\\\"x\\nadd [3, 8, 8]\"];\n  l0 -> l2;\n  l1 -> l2;\n}\n");
}

TEST_CASE("show models: a file beside the user") {
  const Workplace place;
  place.file("mine.yaml",
             "name: mine\ninput: [3, 8, 8]\nlayers:\n  - {name: flat, kind: flatten}\n"
             "  - {name: fc, kind: linear, out_features: 10}\n");
  const json model = json::parse(place.convoy({"show", "models", "mine.yaml", "--json"}).out);
  CHECK(model["parameters"] == 192 * 10 + 10);
  CHECK(model["forward_macs"] == 1920);
}
