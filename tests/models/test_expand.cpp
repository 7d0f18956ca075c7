// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "tests/models/model_text.h"

using namespace convoy;

namespace {

std::string names(const Model& model) {
  std::string text;
  for (const Layer& layer : model.layers) text += layer.name + " ";
  return text;
}

const std::string head =
    "name: toy\ninput: [4, 8, 8]\nparameters: {width: 6, wide: false, filters: [5, 7]}\n";

const std::string residual = R"(
blocks:
  residual:
    arguments: {channels, project: false}
    layers:
      - {name: conv, kind: conv2d, out_channels: $channels, kernel: 1}
      - {name: project, kind: conv2d, when: $project, inputs: [input], out_channels: $channels, kernel: 1}
      - {name: add, kind: add, inputs: [conv, project]}
)";

}  // namespace

TEST_CASE("a repeated block is written out copy after copy, the first with its own arguments") {
  const Model model = model_from(head + residual + R"(
layers:
  - {name: stage, block: residual, repeat: 2, channels: $(2*width), first: {project: true}}
  - {name: after, kind: relu}
)");
  CHECK(names(model) == "stage.0.conv stage.0.project stage.0.add stage.1.conv stage.1.add after ");
  CHECK(model.layers[2].inputs == std::vector<LayerIndex>{0, 1});
  // a layer left out stands for its input: the second copy adds what it reads itself
  CHECK(model.layers[4].inputs == std::vector<LayerIndex>{3, 2});
  CHECK(model.layers[4].output == Shape{12, 8, 8});
  CHECK(model.layers[5].inputs == std::vector<LayerIndex>{4});
}

TEST_CASE("a block that is repeated no times stands for its input") {
  const Model model = model_from(head + residual + R"(
layers:
  - {name: first, kind: relu}
  - {name: stage, block: residual, repeat: 0, channels: 4}
  - {name: after, kind: add, inputs: [stage, input]}
)");
  CHECK(model.layers[1].inputs == std::vector<LayerIndex>{0, image_input});
}

TEST_CASE("expressions are whole-number arithmetic over parameters") {
  const auto channels = [](const std::string& expression) {
    return model_from(head + "layers: [{name: c, kind: conv2d, kernel: 1, out_channels: " + expression + "}]")
        .layers[0]
        .output[0];
  };
  CHECK(channels("$width") == 6);
  CHECK(channels("$filters.1") == 7);
  CHECK(channels("$(2*width + filters.0 - 4/2)") == 15);
  CHECK(channels("$((width + 2)*(3 - 1))") == 16);
  CHECK(channels("$(width - 2 - 1)") == 3);
}

TEST_CASE("wrong expressions are errors at their place") {
  const auto error = [](const std::string& expression) {
    return error_of(head + "layers: [{name: c, kind: conv2d, kernel: 1, out_channels: " + expression + "}]");
  };
  const std::string at = "test.yaml:4:59: expression ";
  CHECK(error("$wdth") ==
        at + "'$wdth' uses 'wdth', which nothing defines here (did you mean 'width'?); known: "
             "filters, wide, width");
  CHECK(error("$(width/4)") == at + "'$(width/4)' divides 6 by 4, which leaves a remainder");
  CHECK(error("$(width/0)") == at + "'$(width/0)' divides by zero");
  CHECK(error("$(width") == at + "'$(width' lacks a ')'");
  CHECK(error("$(width))") == at + "'$(width))' has ')' left over");
  CHECK(error("$") == at + "'$' is none: write $name, $name.0 or $(2*name + 1)");
  CHECK(error("$filters.2") == at + "'$filters.2' asks 'filters' for its item 2, but it is a list");
  CHECK(error("$(9007199254740992*9007199254740992)") ==
        at + "'$(9007199254740992*9007199254740992)' is too large");
  CHECK(error("$(" + std::string(300, '(')).find("is longer than 200 characters") != std::string::npos);
}

TEST_CASE("wrong blocks are errors at their place") {
  CHECK(error_of(head + residual + "layers: [{name: s, block: residul, channels: 4}]") ==
        "test.yaml:12:27: model.layers[0].block: unknown block 'residul' (did you mean 'residual'?); known: "
        "residual");
  CHECK(error_of(head + residual + "layers: [{name: s, block: residual}]") ==
        "test.yaml:12:10: model.layers[0]: key 'channels' is missing");
  CHECK(
      error_of(head + residual + "layers: [{name: s, block: residual, channels: 4, chanels: 4}]") ==
      "test.yaml:12:50: model.layers[0].chanels: unknown key (did you mean 'channels'?); known here: block, "
      "channels, first, frozen, inputs, name, project, repeat, weights_of, when");
  CHECK(error_of(head + "blocks: {a: {layers: [{name: x, block: a}]}}\nlayers: [{name: s, block: a}]") ==
        "test.yaml:4:40: blocks.a.layers[0].block: block 'a' is nested deeper than 16 levels; does it use "
        "itself?");
  CHECK(error_of(head + "blocks: {a: {arguments: {kind: 1}, layers: []}}\nlayers: [{name: s, block: a}]") ==
        "test.yaml:4:32: model.blocks.a.arguments.kind: is a key of every entry and cannot be an argument");
}

TEST_CASE("blocks that multiply without end are stopped") {
  std::string text = head + "blocks:\n  b0: {layers: [{name: r, kind: relu}]}\n";
  for (int i = 1; i < 10; ++i)
    text += "  b" + std::to_string(i) + ": {layers: [{name: r, block: b" + std::to_string(i - 1) +
            ", repeat: 10000}]}\n";
  CHECK(error_of(text + "layers: [{name: s, block: b9}]").find("more than 100000") != std::string::npos);
}

TEST_CASE("names that only stand for one another are a circle") {
  CHECK(error_of(head + "layers:\n  - {name: a, kind: relu, when: false, inputs: [b]}\n"
                        "  - {name: b, kind: relu, when: false, inputs: [a]}\n  - {name: c, kind: relu}\n")
            .find("leads through names that stand for one another in a circle") != std::string::npos);
}
