// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace convoy::lab {

/// Small networks for images of [1, 8, 8]; the first three are also in make_reference.py.
inline std::string learning_network(const std::string& name) {
  const auto network = [&](const std::string& layers) {
    return "{name: " + name + ", input: [1, 8, 8], loss: cross_entropy, layers: [" + layers + "]}";
  };
  const auto block = [](const std::string& n, const std::string& from, int channels) {
    const std::string conv =
        ", kind: conv2d, out_channels: " + std::to_string(channels) + ", kernel: 3, padding: 1, bias: false";
    return "{name: " + n + "a" + conv + ", inputs: [" + from + "]}, {name: " + n +
           "b, kind: batch_norm}, {name: " + n + "c, kind: relu}, {name: " + n + "d" + conv +
           "}, {name: " + n + "e, kind: batch_norm}, {name: " + n + "f, kind: add, inputs: [" + from + ", " +
           n + "e]}, {name: " + n + ", kind: relu}, ";
  };
  if (name == "lenet")
    return network(
        "{name: c1, kind: conv2d, out_channels: 6, kernel: 3, padding: 1}, {name: t1, kind: tanh}, "
        "{name: p1, kind: avg_pool, kernel: 2}, {name: c2, kind: conv2d, out_channels: 16, kernel: 3, "
        "padding: 1}, "
        "{name: t2, kind: tanh}, {name: p2, kind: max_pool, kernel: 2}, {name: f, kind: flatten}, "
        "{name: l1, kind: linear, out_features: 32}, {name: t3, kind: tanh}, {name: l2, kind: linear, "
        "out_features: 10}");
  if (name == "resnet")
    return network(
        "{name: c1, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, bias: false}, {name: b1, kind: "
        "batch_norm}, "
        "{name: r1, kind: relu}, " +
        block("x", "r1", 8) +
        "{name: c2, kind: conv2d, out_channels: 16, kernel: 3, stride: 2, padding: 1, bias: false}, "
        "{name: b2, kind: batch_norm}, {name: r2, kind: relu}, " +
        block("y", "r2", 16) +
        "{name: p, kind: adaptive_avg_pool}, {name: f, kind: flatten}, {name: l, kind: linear, out_features: "
        "10}");
  return network(
      "{name: c1, kind: conv2d, out_channels: 8, kernel: 3, padding: 1}, {name: g, kind: group_norm, groups: "
      "4}, "
      "{name: s, kind: silu}, {name: c2, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, groups: 8}, "
      "{name: h, kind: hardswish}, {name: c3, kind: conv2d, out_channels: 16, kernel: 1, stride: 2}, "
      "{name: r, kind: relu6}, {name: c4, kind: conv2d, out_channels: 16, kernel: 3, padding: 2, dilation: "
      "2, groups: 4}, "
      "{name: e, kind: gelu}, {name: p, kind: adaptive_avg_pool, size: 2}, {name: f, kind: flatten}, "
      "{name: l, kind: linear, out_features: 10}");
}

}  // namespace convoy::lab
