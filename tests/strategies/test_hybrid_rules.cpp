// SPDX-License-Identifier: MIT
// What the rules of hybrids' layouts name, and what they refuse.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/input_error.h"
#include "tests/support/lab.h"

using namespace convoy;
using namespace convoy::lab;

namespace {

std::string hybrid_error(const std::string& strategy, int devices, const std::string& model = "alexnet",
                         std::int64_t batch = 8) {
  try {
    Experiment::with_global_batch(model, star(devices, "1GB/s", "0us"), strategy, batch);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("hybrid: what cannot be shared out is an error with its place") {
  CHECK(hybrid_error("{kind: hybrid}", 2) ==
        "strategy:1:1: strategy: says of no layer how it is shared out; give conv, fc or groups");
  CHECK(hybrid_error("{kind: hybrid, conv: rows}", 2) ==
        "strategy:1:22: strategy.conv: unknown value 'rows'; allowed: batch, filter, channel, pairs, height, "
        "width, replicated, {height: ROWS, width: COLUMNS}");
  CHECK(hybrid_error("{kind: hybrid, conv: {batch: 2}}", 2) ==
        "strategy:1:22: strategy.conv: a mapping is a grid, {height: ROWS, width: COLUMNS}; any other layout "
        "is "
        "one word of batch, filter, channel, pairs, height, width, replicated");
  CHECK(hybrid_error("{kind: hybrid, fc: height}", 2) ==
        "strategy:1:20: strategy.fc: layer 'fc6' (linear) cannot be shared out by height; allowed for it: "
        "batch, "
        "filter, channel, replicated");
  CHECK(hybrid_error("{kind: hybrid, conv: channel}", 4) ==
        "strategy:1:22: strategy.conv: layer 'conv1' has 3 inputs, too few for 4 devices");
  CHECK(hybrid_error("{kind: hybrid, conv: height}", 8) ==
        "strategy:1:22: strategy.conv: layer 'pool5' has 6 rows, too few for 8 devices");
  CHECK(hybrid_error("{kind: hybrid, fc: filter, replicas: 3}", 8) ==
        "strategy:1:38: strategy.replicas: 8 devices do not divide into 3 groups");
  CHECK(hybrid_error("{kind: hybrid, fc: filter, replicas: 3}", 9) ==
        "test:1:1: training.global_batch: 8 cannot be divided into 3 replicas; 6 or 9 can");
  CHECK(hybrid_error("{kind: hybrid, fc: filter}", 9) ==
        "test:1:1: training: a group's batch of 8 leaves some of its 9 devices without an image; at least 9 "
        "is needed");
  CHECK(hybrid_error("{kind: hybrid, conv: filter, fc: batch, scheme: c}", 2) ==
        "strategy:1:49: strategy.scheme: layer 'fc6' is split by images and reads 'dropout6', which is not; "
        "schemes b "
        "and c need all such layers before the others");
  CHECK(hybrid_error("{kind: hybrid, conv: channel}", 2, "mobilenet_v2")
            .starts_with("strategy:1:22: strategy.conv: layer "));
}

TEST_CASE("hybrid: a group that names no layer, or none as it should, is an error with its place") {
  const auto group = [](const std::string& keys) {
    return hybrid_error("{kind: hybrid, groups: [{" + keys + "}]}", 2);
  };
  CHECK(group("layout: filter") ==
        "strategy:1:25: strategy.groups[0]: says of no layers which it means; give layers or kind");
  CHECK(group("layers: fc9, layout: filter") ==
        "strategy:1:34: strategy.groups[0].layers: 'alexnet' has no layer 'fc9' (did you mean 'fc6'?)");
  CHECK(group("layers: [conv1, conv9], layout: filter") ==
        "strategy:1:34: strategy.groups[0].layers: 'alexnet' has no layer 'conv9' (did you mean 'conv1'?)");
  CHECK(group("layers: [conv3, conv1], layout: filter") ==
        "strategy:1:34: strategy.groups[0].layers: layer 'conv3' comes after 'conv1'");
  CHECK(group("layers: [conv1], layout: filter") ==
        "strategy:1:34: strategy.groups[0].layers: expected a name, a pattern such as 'layer4.*', or [first, "
        "last]");
  CHECK(group("layers: \"block*\", layout: filter") ==
        "strategy:1:34: strategy.groups[0].layers: no layer of 'alexnet' has a name like 'block*'");
  CHECK(
      group("kind: lstm, layout: filter") ==
      "strategy:1:32: strategy.groups[0].kind: no layer is of kind 'lstm'; 'alexnet' has adaptive_avg_pool, "
      "conv, conv2d, dropout, fc, flatten, linear, max_pool, relu");
  CHECK(group("layers: flatten, layout: height") ==
        "strategy:1:51: strategy.groups[0].layout: layer 'flatten' (flatten) cannot be shared out by height; "
        "allowed "
        "for it: batch, replicated");
  CHECK(group("layers: conv1, layout: filter, layouts: 1") ==
        "strategy:1:57: strategy.groups[0].layouts: unknown key (did you mean 'layout'?); known here: kind, "
        "layers, "
        "layout");
}

TEST_CASE("hybrid: rules may overlap, the last counts, ranges and patterns pass over what cannot follow") {
  const auto layout_of = [](const std::string& strategy, const std::string& layer) {
    const Experiment experiment("alexnet", star(2, "1GB/s", "0us"), strategy, 8);
    for (const LayerGroup& group : experiment.report().layouts)
      if (std::find(group.layers.begin(), group.layers.end(), layer) != group.layers.end())
        return group.layout;
    return std::string("none");
  };
  const std::string rules =
      "{kind: hybrid, conv: filter, groups: [{layers: [conv1, flatten], layout: height}, {layers: "
      "\"conv[45]\", "
      "layout: batch}, {layers: [conv1, fc8], kind: fc, layout: channel}]}";
  CHECK(layout_of(rules, "conv1") == "height");
  CHECK(layout_of(rules, "pool2") == "height");
  CHECK(layout_of(rules, "conv4") == "batch");
  CHECK(layout_of(rules, "relu5") == "height");  // named by the range
  CHECK(layout_of(rules, "flatten") == "replicated");
  CHECK(layout_of(rules, "fc7") == "channel");
}

TEST_CASE("hybrid: labels name the rules and what is not the default") {
  const auto label = [](const std::string& yaml) { return read_strategy(parse_yaml(yaml, "s"))->label(); };
  CHECK(label("{kind: hybrid, conv: batch, fc: filter}") == "hybrid: conv batch, fc filter");
  CHECK(label("{kind: hybrid, conv: batch, fc: pairs, scheme: c, replicas: 2, overlap: false}") ==
        "hybrid: conv batch, fc pairs, scheme c, 2 replicas, no overlap");
  CHECK(label("{kind: hybrid, groups: [{layers: [a, b], layout: height}, {kind: conv, layout: filter}]}") ==
        "hybrid: a to b height, conv filter");
}
