// SPDX-License-Identifier: MIT
// What kernels that compute little move, counted tensor by tensor.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "models/layer_costs.h"
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
