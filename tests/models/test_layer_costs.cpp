// SPDX-License-Identifier: MIT
// What kernels that compute little move, counted tensor by tensor.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "models/unfused_work.h"
#include "tests/models/model_text.h"

using namespace convoy;

TEST_CASE("kernels read their inputs once and write their outputs once, forward and backward") {
  struct Moved {
    std::string keys;
    double forward, backward;  ///< values of an image
  };
  // In: 4 x 6 x 6 = 144 values. Backward reads the output's gradient, writes the input's, and reads what the
  // rule of the gradient needs.
  const std::vector<Moved> table{
      {"kind: upsample, scale: 2", 144 + 576, 576 + 144},
      {"kind: pad, left: 1, right: 1, top: 1, bottom: 1", 144 + 256, 256 + 144},
      {"kind: max_pool, kernel: 2", 144 + 36, 36 + 144},
      {"kind: avg_pool, kernel: 3", 144 + 16, 16 + 144},
      {"kind: adaptive_avg_pool", 144 + 4, 4 + 144},
      {"kind: channel_shuffle, groups: 2", 144 + 144, 144 + 144},
      {"kind: dropout", 144 + 144, 144 + 144},
      {"kind: sigmoid", 144 + 144, 144 + 144 + 144},  // and its result
      {"kind: local_response_norm, size: 5", 144 + 2 * 144,
       4 * 144},                                         // and the scales, written and read; its input
      {"kind: batch_norm", 144 + 144, 144 + 144 + 144},  // and its input
  };
  for (const Moved& moved : table) {
    CAPTURE(moved.keys);
    const LayerCosts costs = layer_costs(toy("[4, 6, 6]", "  - {name: x, " + moved.keys + "}\n"), 0);
    REQUIRE(costs.forward);
    REQUIRE(costs.data_gradient);
    CHECK(costs.forward->values == moved.forward);
    CHECK(costs.data_gradient->values == moved.backward);
  }
}

TEST_CASE("on images of twice the height kernels do twice as much, with the same parameters [law]") {
  const auto costs_of = [](const std::string& keys, int height) {
    return layer_costs(toy(fmt::format("[4, {}, 6]", height), "  - {name: x, " + keys + "}\n"), 0);
  };
  for (const std::string keys :
       {"kind: batch_norm", "kind: layer_norm", "kind: local_response_norm, size: 5", "kind: relu",
        "kind: gelu", "kind: dropout", "kind: max_pool, kernel: [2, 3]", "kind: avg_pool, kernel: [3, 2]",
        "kind: upsample, scale: 2", "kind: scale", "kind: channel_shuffle, groups: 2",
        "kind: conv2d, out_channels: 8, kernel: 1", "kind: conv2d, out_channels: 4, kernel: 2, stride: 2",
        "kind: conv_transpose2d, out_channels: 4, kernel: 2, stride: 2", "kind: add, inputs: [input, input]",
        "kind: multiply, inputs: [input, input]", "kind: concat, inputs: [input, input]",
        "kind: slice, first: 1, last: 3"}) {
    CAPTURE(keys);
    const LayerCosts once = costs_of(keys, 6), twice = costs_of(keys, 12);
    for (const auto part : {&LayerCosts::forward, &LayerCosts::data_gradient, &LayerCosts::weight_gradient}) {
      REQUIRE((once.*part).has_value() == (twice.*part).has_value());
      if (!(once.*part)) continue;
      const KernelCost &one = *(once.*part), &two = *(twice.*part);
      CHECK(two.flops == 2 * one.flops);
      CHECK(two.values == 2 * one.values);
      CHECK(two.bytes == 2 * one.bytes);
      CHECK(two.parameters == one.parameters);
    }
  }
}

TEST_CASE("a product's gradient is summed up once for each input that is smaller than it") {
  // 4 x 6 x 6 = 144 values, from channels' factors, from pixels' factors, or from both.
  const Model model = toy("[4, 6, 6]",
                          "  - {name: channels, kind: adaptive_avg_pool, inputs: [input], size: 1}\n"
                          "  - {name: pixels, kind: conv2d, inputs: [input], out_channels: 1, kernel: 1}\n"
                          "  - {name: none, kind: multiply, inputs: [input, input]}\n"
                          "  - {name: one, kind: multiply, inputs: [channels, input]}\n"
                          "  - {name: both, kind: multiply, inputs: [channels, pixels]}\n");
  for (const Framework framework : {Framework::pytorch, Framework::tensorflow})
    for (const double smaller : {0, 1, 2}) {
      CAPTURE(smaller);
      const std::size_t layer = 2 + static_cast<std::size_t>(smaller);
      const KernelCost plain = *layer_costs(model, layer).data_gradient;
      LayerCosts costs = layer_costs(model, layer);
      add_unfused_work(costs, model, layer, framework, ExecutionMode::graph, Precision::fp16);
      CHECK(costs.data_gradient->flops - plain.flops == smaller * 144);
      CHECK(costs.data_gradient->values - plain.values == smaller * 3 * 144);
      // TensorFlow sums in single precision: casts write four bytes a value, which the sum reads.
      CHECK(costs.data_gradient->bytes - plain.bytes ==
            (framework == Framework::tensorflow ? smaller * 8 * 144 : 0));
    }
}
