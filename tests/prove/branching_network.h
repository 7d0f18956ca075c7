// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// A network of 8 x 8 pixels in which tensors have several readers: ways side by side, gates, halves of the channels, and
/// concatenations. With every kind of activation and normalization, dropout, both kinds of pooling, and often a second loss.
/// @param reads_twice some layers read the same tensor by two of their inputs
inline std::string branching_network(Dice& dice, bool reads_twice) {
  std::string layers;
  const auto add = [&](const std::string& keys) { layers += fmt::format("{{{}}}, ", keys); };
  const auto conv = [&](const std::string& name, int kernel, const std::string& more = "") {
    add(fmt::format("name: {}, kind: conv2d, out_channels: 8, kernel: {}, padding: {}{}", name, kernel,
                    kernel / 2, more));
  };
  conv("in", 3);
  for (int block = 0, blocks = dice.between(1, 3); block < blocks; ++block) {
    const std::string norm =
        dice.one_of<std::string>({"", "batch_norm", "layer_norm", "group_norm, groups: 4"});
    if (!norm.empty()) add(fmt::format("name: norm{}, kind: {}", block, norm));
    add(fmt::format("name: act{}, kind: {}", block,
                    dice.one_of<std::string>({"relu", "relu", "relu6", "leaky_relu", "hardswish",
                                              "hardsigmoid", "silu", "gelu", "sigmoid", "tanh"})));
    const std::string act = fmt::format("act{}", block);
    switch (dice.between(0, reads_twice ? 6 : 4)) {
      case 0:
        conv(fmt::format("left{}", block), 1, fmt::format(", inputs: [{}]", act));
        conv(fmt::format("right{}", block), 3, fmt::format(", inputs: [{}]", act));
        add(fmt::format("name: sum{0}, kind: add, inputs: [left{0}, right{0}{1}]", block,
                        dice.coin() ? ", " + act : ""));
        break;
      case 1:
        add(fmt::format("name: mean{0}, kind: adaptive_avg_pool, inputs: [act{0}]", block));
        conv(fmt::format("gate{}", block), 1);
        add(fmt::format("name: gated{0}, kind: multiply, inputs: [act{0}, gate{0}]", block));
        break;
      case 2:
        add(fmt::format("name: low{0}, kind: slice, first: 0, last: 4, inputs: [act{0}]", block));
        add(fmt::format("name: high{0}, kind: slice, first: 4, last: 8, inputs: [act{0}]", block));
        add(fmt::format("name: way{0}, kind: conv2d, out_channels: 4, kernel: 1", block));
        add(fmt::format("name: both{0}, kind: concat, inputs: [low{0}, way{0}]", block));
        if (dice.coin()) add(fmt::format("name: shuffled{}, kind: channel_shuffle, groups: 2", block));
        break;
      case 3:
        add(fmt::format("name: other{0}, kind: tanh, inputs: [act{0}]", block));
        add(fmt::format("name: joined{0}, kind: concat, inputs: [act{0}, other{0}]", block));
        conv(fmt::format("out{}", block), 1);
        break;
      case 4:
        if (dice.coin()) add(fmt::format("name: drop{}, kind: dropout, rate: 0.3", block));
        conv(fmt::format("depth{}", block), 3, ", groups: 8");
        break;
      case 5:
        add(fmt::format("name: twice{0}, kind: {1}, inputs: [act{0}, act{0}]", block,
                        dice.one_of<std::string>({"add", "multiply"})));
        break;
      default:
        add(fmt::format("name: double{0}, kind: concat, inputs: [act{0}, act{0}]", block));
        conv(fmt::format("out{}", block), 1);
    }
  }
  if (dice.coin())
    add(fmt::format("name: pool, kind: {}, kernel: 2", dice.one_of<std::string>({"max_pool", "avg_pool"})));
  if (dice.coin()) add("name: mean, kind: adaptive_avg_pool");
  add("name: flat, kind: flatten");
  add("name: fc1, kind: linear, out_features: 12");
  add("name: act, kind: relu");
  if (dice.coin()) add("name: drop, kind: dropout, rate: 0.3");
  if (dice.coin()) {
    add("name: side_mean, kind: adaptive_avg_pool, inputs: [in]");
    add("name: side_flat, kind: flatten");
    add("name: side, kind: linear, out_features: 10");
    add(fmt::format("name: fc2, kind: linear, out_features: 10, inputs: [{}]",
                    layers.find("name: drop,") != std::string::npos ? "drop" : "act"));
  } else {
    add("name: fc2, kind: linear, out_features: 10");
  }
  return fmt::format("{{name: net, input: [3, 8, 8], loss: cross_entropy, layers: [{}]}}", layers);
}

}  // namespace convoy::lab
