// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

using nlohmann::json;

TEST_CASE("show: every subject lists what there is, and each thing of it in detail, as text and as JSON") {
  const Workplace place;
  for (const char* subject : {"models", "devices", "servers", "clusters", "strategies"}) {
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
  CHECK(model["layers"][0].size() == 5);
  CHECK(model["layers"][0]["output_shape"] == json::array({64, 112, 112}));
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
