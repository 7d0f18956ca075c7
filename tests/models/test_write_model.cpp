// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include "models/model.h"
#include "models/write_model.h"
#include "sim/base/yaml_node.h"
#include "tests/models/onnx_writer.h"
#include "tests/support/working_file.h"

using namespace convoy;

namespace {

Model written_model_of(const std::string& text) { return read_model(parse_yaml(text, "model.yaml")); }

void check_same(const Model& a, const Model& b) {
  CHECK(a.name == b.name);
  CHECK(a.input == b.input);
  CHECK(a.cross_entropy_loss == b.cross_entropy_loss);
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const Layer &x = a.layers[i], &y = b.layers[i];
    CAPTURE(x.name);
    REQUIRE(x.name == y.name);
    REQUIRE(x.kind == y.kind);
    REQUIRE(x.inputs == y.inputs);
    REQUIRE(x.output == y.output);
    REQUIRE(x.parameters == y.parameters);
    REQUIRE(x.macs == y.macs);
    REQUIRE(x.frozen == y.frozen);
    REQUIRE(x.weights_of == y.weights_of);
  }
}

}  // namespace

TEST_CASE("write model: what is written of every network of the zoo is read as that network") {
  int read = 0;
  for (const std::string& name : zoo_names()) {
    if (name.find("DEPTH") != std::string::npos) continue;  // a pattern
    CAPTURE(name);
    const Model model = written_model_of(name);
    check_same(model, written_model_of(model_file(model)));
    ++read;
  }
  CHECK(read > 50);
}

TEST_CASE("write model: what was read of an ONNX file, batch normalization put back, is the same as YAML") {
  const WorkingFile file("net.onnx",
                         exported(written_model_of("resnet18"), -1, true, Folding::pytorch).bytes());
  const Model model = written_model_of("{onnx: net.onnx}");
  CHECK(model.layers.size() > 60);
  check_same(model, written_model_of(model_file(model)));
}

TEST_CASE("write model: keys that no network of the zoo has, and names that need quotes") {
  const Model model = written_model_of(R"(name: "odd: \"name\""
input: [4, 8, 8]
loss: cross_entropy
layers:
  - {name: "/a/Conv: 0", kind: conv2d, out_channels: 4, kernel: [1, 3], stride: [2, 1], padding: [0, 1], groups: 2, bias: false, l2_loss: true, frozen: true}
  - {name: "1", kind: conv_transpose2d, out_channels: 4, kernel: 2, stride: 2, output_padding: 1, dilation: 2}
  - {name: cut, kind: slice, first: 1, step: 2, axis: 1}
  - {name: up, kind: upsample, size: [20, 7]}
  - {name: timed, kind: custom, forward_time: 1.25us, backward_time: 3ms, parameters: 7, output: [10]}
  - {name: worked, kind: custom, forward_flops: 1e9, backward_flops: 2.5e9, memory_bytes: 12, output: [10]}
  - {name: first, kind: linear, out_features: 10, l2_loss: true}
  - {name: again, kind: linear, out_features: 10, l2_loss: true, weights_of: first}
  - {name: sum, kind: add, inputs: [again, worked]}
  - {name: drop, kind: dropout, rate: 0.1}
  - {name: any, kind: elementwise, keeps_inputs: false, parameters: 3}
)");
  check_same(model, written_model_of(model_file(model)));
}
