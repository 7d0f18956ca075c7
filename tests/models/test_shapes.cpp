// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/models/model_text.h"

using namespace convoy;

namespace {

Layer only(const std::string& input, const std::string& keys) {
  return toy(input, "  - {name: x, " + keys + "}\n").layers[0];
}

std::string failure(const std::string& input, const std::string& keys) {
  return layers_error(input, "  - {name: x, " + keys + "}\n");
}

}  // namespace

TEST_CASE("convolutions have the shapes, parameters and multiply-adds counted by hand") {
  // floor((32 + 2*2 - 5)/2) + 1 = 16; floor((20 + 0 - 2*(3-1) - 1)/1) + 1 = 16
  const Layer conv = only("[6, 32, 20]",
                          "kind: conv2d, out_channels: 4, kernel: [5, 3], stride: [2, 1], padding: [2, 0], "
                          "dilation: [1, 2], groups: 2");
  CHECK(conv.output == Shape{4, 16, 16});
  CHECK(conv.parameters ==
        std::vector<ParameterTensor>{{ParameterRole::weight, 4 * 3 * 5 * 3}, {ParameterRole::bias, 4}});
  CHECK(conv.macs == 4 * 16 * 16 * 3 * 5 * 3);
}

TEST_CASE("a transposed convolution undoes the shape of its convolution") {
  // (8 - 1)*2 - 2*1 + 4 = 16; every input value meets 5*4*4 weights
  const Layer up =
      only("[3, 8, 8]", "kind: conv_transpose2d, out_channels: 5, kernel: 4, stride: 2, padding: 1");
  CHECK(up.output == Shape{5, 16, 16});
  CHECK(up.macs == 3 * 8 * 8 * 5 * 4 * 4);
  CHECK(up.parameter_elements() == 3 * 5 * 4 * 4 + 5);
}

TEST_CASE("pooling rounds down, or up where the last window still begins inside") {
  CHECK(only("[1, 6, 7]", "kind: max_pool, kernel: 3, stride: 2").output == Shape{1, 2, 3});
  CHECK(only("[1, 6, 7]", "kind: max_pool, kernel: 3, stride: 2, ceil: true").output == Shape{1, 3, 3});
  // a third window would begin at 2*2 = 4, past the 3 values and their padding
  CHECK(only("[1, 3, 3]", "kind: avg_pool, kernel: 2, stride: 2, padding: 1, ceil: true").output ==
        Shape{1, 2, 2});
  CHECK(only("[1, 8, 8]", "kind: max_pool, kernel: 2").output == Shape{1, 4, 4});
}

TEST_CASE("pooling has as many windows as cover the padded input and begin inside it, counted one by one") {
  for (int in = 4; in <= 12; ++in)
    for (int kernel = 1; kernel <= 4; ++kernel)
      for (int stride = 1; stride <= 5; ++stride)
        for (int padding = 0; padding <= kernel / 2; ++padding) {
          int inside = 1,
              covering = 1;  // windows that end inside the padded input; that leave nothing of it out
          while (inside * stride + kernel <= in + 2 * padding) ++inside;
          while ((covering - 1) * stride + kernel < in + 2 * padding) ++covering;
          if ((covering - 1) * stride >= in + padding) --covering;
          const auto windows = [&](const char* ceil) {
            return only(fmt::format("[1, {}, 20]", in),
                        fmt::format("kind: max_pool, kernel: {}, stride: {}, padding: {}, ceil: {}", kernel,
                                    stride, padding, ceil))
                .output[1];
          };
          CAPTURE(in);
          CAPTURE(kernel);
          CAPTURE(stride);
          CAPTURE(padding);
          CHECK(windows("false") == inside);
          CHECK(windows("true") == covering);
        }
}

TEST_CASE("the other kinds have the shapes their words say") {
  CHECK(only("[6, 4, 4]", "kind: flatten").output == Shape{96});
  CHECK(only("[6, 4, 4]", "kind: adaptive_avg_pool").output == Shape{6, 1, 1});
  CHECK(only("[6, 4, 4]", "kind: upsample, scale: 3").output == Shape{6, 12, 12});
  CHECK(only("[6, 4, 4]", "kind: slice, first: 2, last: 5").output == Shape{3, 4, 4});
  CHECK(only("[6, 4, 4]", "kind: channel_shuffle, groups: 3").output == Shape{6, 4, 4});
  CHECK(only("[6, 4, 4]", "kind: batch_norm").parameter_elements() == 12);
  CHECK(only("[6, 4, 4]", "kind: batch_norm, affine: false").parameter_elements() == 0);
  CHECK(only("[6, 4, 4]", "kind: scale").parameter_elements() == 6);
  CHECK(only("[6, 4, 4]", "kind: concat, inputs: [input, input]").output == Shape{12, 4, 4});
  CHECK(only("[9]", "kind: linear, out_features: 4, bias: false").parameter_elements() == 36);
}

TEST_CASE("shapes that do not fit are errors at the layer") {
  const std::string at = "test.yaml:4:5: layer 'x': ";
  CHECK(failure("[3, 8, 8]", "kind: conv2d, out_channels: 4, kernel: 11, padding: 1") ==
        at + "the kernel spans 11 in height, the padded input has 10");
  CHECK(failure("[3, 8, 8]", "kind: conv2d, out_channels: 4, kernel: 3, groups: 2") ==
        at + "3 input channels cannot be divided into 2 groups");
  CHECK(failure("[4, 8, 8]", "kind: conv2d, out_channels: 3, kernel: 3, groups: 2") ==
        at + "3 output channels cannot be divided into 2 groups");
  CHECK(failure("[8]", "kind: conv2d, out_channels: 4, kernel: 1") ==
        at + "conv2d needs an input [channels, height, width], its input is [8]");
  CHECK(failure("[3, 8, 8]", "kind: linear, out_features: 4") ==
        at + "linear needs a vector of features, its input is [3, 8, 8]; put a flatten before it");
  CHECK(failure("[3, 8, 8]", "kind: add") ==
        at + "add reads 2 inputs or more, 1 is given; name them with `inputs: [a, b]`");
  CHECK(failure("[3, 8, 8]", "kind: relu, inputs: [input, input]") ==
        at + "relu reads one input, 2 are given");
  CHECK(failure("[3, 8, 8]", "kind: slice, first: 1, last: 4") ==
        at + "slice up to channel 4 of an input [3, 8, 8]");
  CHECK(failure("[3, 8, 8]", "kind: channel_shuffle, groups: 2") ==
        at + "3 input channels cannot be divided into 2 groups");
  CHECK(failure("[1, 8, 8]", "kind: conv_transpose2d, out_channels: 1, kernel: 1, padding: 4") ==
        at + "padding 4 leaves nothing of the output of an input [1, 8, 8]");
  CHECK(failure("[1, 8, 8]", "kind: conv_transpose2d, out_channels: 1, kernel: 3, output_padding: 1") ==
        at + "output_padding must be smaller than the stride");
  CHECK(failure("[1000000, 1000000, 1000000]", "kind: relu") ==
        at + "is too large: more than 2^53 values or multiply-adds an image");
  CHECK(failure("[1000000]", "kind: linear, out_features: 1000000000") == "");
  CHECK(failure("[3, 100000, 100000]", "kind: conv2d, out_channels: 1000000, kernel: 3, padding: 1") ==
        at + "is too large: more than 2^53 values or multiply-adds an image");
}

TEST_CASE("sizes beyond 2^53 are errors wherever they come from") {
  const std::string too_large = "is too large: more than 2^53 values or multiply-adds an image";
  const std::string huge = "  - {name: h, kind: upsample, scale: 1000000000}\n";
  CHECK(layers_error("[1, 1, 1]", huge).ends_with("layer 'h': " + too_large));
  CHECK(layers_error(
            "[1, 1000000, 1]",
            "  - {name: u, kind: conv_transpose2d, out_channels: 1, kernel: 1, stride: [1000000000, 1]}\n"
            "  - {name: x, kind: conv_transpose2d, out_channels: 1, kernel: 1, stride: [1000000000, 1]}\n")
            .ends_with("layer 'x': " + too_large));
  CHECK(layers_error("[1]",
                     "  - {name: a, kind: custom, forward_flops: 0, backward_flops: 0, output: [1], "
                     "parameters: 9e15}\n"
                     "  - {name: b, kind: custom, forward_flops: 0, backward_flops: 0, output: [1], "
                     "parameters: 9e15}\n") ==
        "test.yaml:5:5: layer 'b': up to here the model has more than 2^53 parameters or multiply-adds");
  const auto two_of = [](const char* parameters) {
    return layers_error(
        "[1]", fmt::format("  - {{name: a, kind: custom, forward_flops: 0, backward_flops: 0, output: "
                           "[1], parameters: {0}}}\n"
                           "  - {{name: b, kind: custom, forward_flops: 0, backward_flops: 0, output: "
                           "[1], parameters: 4503599627370496}}\n",
                           parameters));
  };
  CHECK(two_of("4503599627370496").empty());  // 2^52 each
  CHECK(two_of("4503599627370497").ends_with("more than 2^53 parameters or multiply-adds"));
}

TEST_CASE("inputs of unlike shapes are errors that show them") {
  const std::string two =
      "  - {name: a, kind: conv2d, out_channels: 4, kernel: 3}\n"
      "  - {name: b, kind: custom, forward_flops: 1, backward_flops: 2, output: [4, 5, 5], "
      "inputs: [input]}\n";
  CHECK(layers_error("[3, 8, 8]", two + "  - {name: x, kind: add, inputs: [a, b]}\n") ==
        "test.yaml:6:5: layer 'x': add needs inputs of one shape, or of size 1 where another is larger, got "
        "[4, 6, 6] and [4, 5, 5]");
  CHECK(layers_error("[3, 8, 8]", two + "  - {name: x, kind: concat, inputs: [a, b]}\n") ==
        "test.yaml:6:5: layer 'x': concat needs inputs that differ in channels only, got [4, 6, 6] and [4, "
        "5, 5]");
  CHECK(layers_error("[3, 8, 8]", two + "  - {name: x, kind: multiply, inputs: [a, b]}\n") ==
        "test.yaml:6:5: layer 'x': multiply needs inputs of one shape, or of size 1 where another is larger, "
        "got "
        "[4, 6, 6] and [4, 5, 5]");
  CHECK(layers_error("[3, 8, 8]", two + "  - {name: x, kind: linear, out_features: 2, inputs: [b]}\n") ==
        "test.yaml:6:5: layer 'x': linear needs a vector of features, its input is [4, 5, 5]; put a flatten "
        "before it");
}
