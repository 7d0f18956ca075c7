// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/models/model_text.h"

using namespace convoy;

TEST_CASE("layers read the one before them unless inputs say otherwise, in any order of the file") {
  const Model model = toy("[3, 8, 8]", R"(
  - {name: sum, kind: add, inputs: [a, b]}
  - {name: a, kind: conv2d, out_channels: 4, kernel: 1, inputs: [input]}
  - {name: b, kind: relu}
)");
  REQUIRE(model.layers.size() == 3);
  CHECK(model.layers[0].name == "a");
  CHECK(model.layers[1].name == "b");
  CHECK(model.layers[2].name == "sum");
  CHECK(model.layers[0].inputs == std::vector<LayerIndex>{image_input});
  CHECK(model.layers[1].inputs == std::vector<LayerIndex>{0});
  CHECK(model.layers[2].inputs == std::vector<LayerIndex>{0, 1});
}

TEST_CASE("an order that is topological is kept") {
  const Model model = toy("[8]", R"(
  - {name: z, kind: relu}
  - {name: y, kind: relu, inputs: [input]}
  - {name: x, kind: relu, inputs: [input]}
  - {name: w, kind: add, inputs: [x, z]}
)");
  std::string order;
  for (const Layer& layer : model.layers) order += layer.name;
  CHECK(order == "zyxw");
}

TEST_CASE("a circle of layers is named") {
  CHECK(layers_error("[8]", R"(
  - {name: a, kind: relu}
  - {name: b, kind: add, inputs: [a, d]}
  - {name: c, kind: relu}
  - {name: d, kind: relu}
)") == "test.yaml:7:5: model.layers: the layers read one another in a circle: c -> d -> b -> c");
  CHECK(layers_error("[8]", "  - {name: a, kind: relu, inputs: [a]}\n") ==
        "test.yaml:4:5: model.layers: the layers read one another in a circle: a -> a");
}

TEST_CASE("wrong layers are errors at their place") {
  CHECK(layers_error("[3, 8, 8]", "  - {name: a, kind: liner}\n")
            .starts_with(
                "test.yaml:4:21: model.layers.a.kind: unknown layer kind 'liner' (did you mean 'linear'?); "
                "known: conv2d, "));
  CHECK(layers_error("[3, 8, 8]", "  - {name: a, kind: conv2d, out_channels: 4, kernal: 3}\n") ==
        "test.yaml:4:46: model.layers.a.kernal: unknown key (did you mean 'kernel'?); known here: bias, "
        "dilation, frozen, groups, inputs, kernel, kind, l2_loss, name, out_channels, padding, stride, "
        "weights_of, when");
  CHECK(layers_error("[3, 8, 8]", "  - {name: a, kind: relu, slope: 3}\n") ==
        "test.yaml:4:27: model.layers.a.slope: unknown key; known here: frozen, inputs, kind, name, "
        "weights_of, when");
  CHECK(layers_error("[3, 8, 8]", "  - {name: a, kind: relu}\n  - {name: a, kind: relu}\n") ==
        "test.yaml:5:12: model.layers[1].name: two layers are named 'a' (the first in line 4)");
  CHECK(layers_error("[3, 8, 8]", "  - {name: input, kind: relu}\n") ==
        "test.yaml:4:12: model.layers[0].name: 'input' is the name of the image; choose another");
  CHECK(layers_error("[3, 8, 8]",
                     "  - {name: conv, kind: relu}\n  - {name: b, kind: relu, inputs: [cnov]}\n") ==
        "test.yaml:5:36: inputs: no layer is named 'cnov' (did you mean 'conv'?); known: input, b, conv");
  CHECK(layers_error("[3, 8, 8]", "  - {name: a, kind: relu, inputs: []}\n") ==
        "test.yaml:4:35: model.layers[0].inputs: expected a list of layer names, found an empty one");
  CHECK(layers_error("[3, 8, 8]", "  - {kind: relu}\n") ==
        "test.yaml:4:5: model.layers[0]: key 'name' is missing");
  CHECK(layers_error("[3, 8, 8]", "  - {name: p, kind: max_pool, kernel: 2, padding: 2}\n") ==
        "test.yaml:4:51: model.layers.p.padding: must be at most half the kernel, or windows would hold "
        "padding only");
  CHECK(layers_error("[3, 8, 8]", "  - {name: c, kind: conv2d, out_channels: 1, kernel: [1, 2, 3]}\n") ==
        "test.yaml:4:54: model.layers.c.kernel: expected a whole number or [height, width], found a list");
}

TEST_CASE("wrong models are errors") {
  CHECK(error_of("[1]") ==
        "test.yaml:1:1: model: expected the name of a zoo model or a mapping, found a list");
  CHECK(error_of("{name: a, input: [3, 8, 8, 8, 8], layers: []}") ==
        "test.yaml:1:18: model.input: expected [channels, height, width], [channels, depth, height, width], "
        "[channels, tokens] or [features], found a list of 5");
  CHECK(error_of("{name: a, input: [3, 8, 8], layers: []}") ==
        "test.yaml:1:37: model.layers: must have at least one layer");
  CHECK(error_of("{onnx: net.onnx}") == "test.yaml:1:8: model.onnx: there is no file 'net.onnx'");
  CHECK(error_of("{name: a, input: [0, 8, 8], layers: [{name: r, kind: relu}]}") ==
        "test.yaml:1:19: model.input[0]: 0 is out of range: between 1 and 1000000 is allowed");
}

TEST_CASE("a model file is found beside the file that names it, and takes its parameters") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "convoy_test_read_model";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "net.yaml") << "name: net\ninput: [4]\nparameters: {width: 3}\n"
                                        "layers:\n  - {name: fc, kind: linear, out_features: $width}\n";
  const std::string experiment = (folder / "experiment.yaml").string();
  CHECK(read_model(parse_yaml("{file: net.yaml}", experiment)).layers[0].output == Shape{3});
  const Model model = read_model(parse_yaml("{file: net.yaml, width: 7, input: [2]}", experiment));
  CHECK(model.name == "net");
  CHECK(model.layers[0].parameters ==
        std::vector<ParameterTensor>{{ParameterRole::weight, 14}, {ParameterRole::bias, 7}});
  CHECK_THROWS_AS(read_model(parse_yaml("{file: none.yaml}", experiment)), InputError);
  std::filesystem::remove_all(folder);
}
