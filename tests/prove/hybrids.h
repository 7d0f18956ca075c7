// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/laws/random_experiment.h"

namespace convoy::lab {

/// A network of 8 x 8 pixels whose layers can be split up to four ways by images, channels, rows and columns:
/// convolutions, dense and grouped, strides, ways side by side, a factor for each channel.
inline std::string splittable_network(Dice& dice, bool normalizes) {
  std::string layers;
  const auto add = [&](const std::string& keys) { layers += fmt::format("{{{}}}, ", keys); };
  add(fmt::format("name: in, kind: conv2d, out_channels: 8, kernel: 3, padding: {}", dice.coin() ? 1 : 0));
  for (int block = 0, blocks = dice.between(1, 3); block < blocks; ++block) {
    if (normalizes && dice.coin()) add(fmt::format("name: bn{}, kind: batch_norm", block));
    add(fmt::format("name: relu{}, kind: {}", block, dice.coin() ? "relu" : "tanh"));
    switch (dice.between(0, 3)) {
      case 0:
        add(fmt::format("name: left{0}, kind: conv2d, out_channels: 8, kernel: 1, inputs: [relu{0}]", block));
        add(
            fmt::format("name: right{0}, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, inputs: "
                        "[relu{0}]",
                        block));
        add(fmt::format("name: sum{0}, kind: add, inputs: [left{0}, right{0}{1}]", block,
                        dice.coin() ? fmt::format(", relu{}", block) : ""));
        break;
      case 1:
        add(fmt::format("name: mean{0}, kind: adaptive_avg_pool, inputs: [relu{0}]", block));
        add(fmt::format("name: gate{}, kind: conv2d, out_channels: 8, kernel: 1", block));
        add(fmt::format("name: gated{0}, kind: multiply, inputs: [relu{0}, gate{0}]", block));
        break;
      case 2:
        add(fmt::format("name: depth{}, kind: conv2d, out_channels: 8, kernel: 3, padding: 1, groups: 8",
                        block));
        break;
      default:
        add(fmt::format("name: conv{}, kind: conv2d, out_channels: {}, kernel: {}", block, 8,
                        dice.coin() ? "3, padding: 1" : "1"));
    }
  }
  if (dice.coin()) add("name: down, kind: max_pool, kernel: 2, stride: 1");
  if (dice.coin()) add("name: pool, kind: adaptive_avg_pool");
  add("name: flat, kind: flatten");
  add("name: fc1, kind: linear, out_features: 12");
  add("name: act, kind: relu");
  add("name: fc2, kind: linear, out_features: 10");
  return fmt::format("{{name: net, input: [3, 8, 8], loss: cross_entropy, layers: [{}]}}", layers);
}

/// An experiment whose layers have random layouts, in groups of up to four devices, of which there may be
/// replicas, alone or as stages of a pipeline.
struct HybridExperiment {
  std::string model, cluster, strategy, conv, fc;
  int batch = 4, devices = 1, replicas = 1, group = 1, stages = 1;

  explicit HybridExperiment(Dice& dice, bool normalizes = true, bool compresses = true)
      : model(splittable_network(dice, normalizes)) {
    group = dice.one_of<int>({2, 2, 3, 4, 4});
    replicas = dice.one_of<int>({1, 1, 2});
    stages = dice.one_of<int>({1, 1, 2});
    devices = group * replicas * stages;
    cluster = star(devices, "1GB/s", "1us");
    conv = dice.one_of<std::string>({"batch", "filter", "pairs", "height", "width", "grid", "replicated"});
    if (conv == "pairs" && model.find("groups: 8") != std::string::npos) conv = "filter";
    if (conv == "grid" && group != 4) conv = "height";
    if (conv == "grid") conv = "{height: 2, width: 2}";
    fc = dice.one_of<std::string>({"batch", "filter", "channel", "pairs", "replicated"});
    const std::string micro = fmt::format("micro_batches: {}", dice.one_of<int>({1, 1, 2}));
    const bool parts = stages == 1 && fc != "batch" && conv == "batch";  // no layer behind is by images
    const std::string scheme = parts ? dice.one_of<std::string>({"", ", scheme: b", ", scheme: c"}) : "";
    const bool plain = scheme.empty();
    std::string more =
        dice.one_of<std::string>({"", "", ", zero: 1", plain ? ", zero: 2" : "", plain ? ", zero: 3" : ""});
    if (more.empty() && compresses)
      more = dice.one_of<std::string>(
          {"", "", ", compression: fp16", ", compression: {kind: powersgd, rank: 1}"});
    // One value for each channel has no rows to split.
    const bool in_space = conv == "height" || conv == "width" || conv.front() == '{';
    if (in_space && model.find("gate") != std::string::npos)
      more += ", groups: [{layers: 'gate*', layout: replicated}]";
    const std::string keys =
        fmt::format("conv: {}, fc: {}, replicas: {}, bucket: {}kB, overlap: {}{}{}", conv, fc, replicas,
                    dice.one_of<int>({1, 3, 300}), dice.coin(), scheme, more);
    strategy = stages == 1
                   ? fmt::format("{{kind: hybrid, {}, {}}}", micro, keys)
                   : fmt::format(
                         "{{kind: pipeline, stages: 2, {}, schedule: {}, recompute: {}, inner: {{kind: "
                         "hybrid, {}}}}}",
                         micro, dice.one_of<std::string>({"gpipe", "1f1b"}),
                         dice.one_of<std::string>({"never", "always"}), keys);
  }
};

}  // namespace convoy::lab
