// SPDX-License-Identifier: MIT
// Which channels and rows of the input a part of a layer's output is made of, by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "models/locality.h"
#include "models/model.h"
#include "sim/base/yaml_node.h"

using namespace convoy;

namespace {

Model small_model(const std::string& layers) {
  return read_model(parse_yaml("{name: m, input: [6, 4, 4], layers: [" + layers + "]}", "model"));
}

std::string text_of(const std::vector<ChannelSource>& sources) {
  std::string text;
  for (const ChannelSource& source : sources)
    text += source.input == ChannelSource::every_input ? fmt::format("*{} ", source.channel)
                                                       : fmt::format("{}.{} ", source.input, source.channel);
  return text;
}

std::string sources_of(const std::string& layers) {
  const Model model = small_model(layers);
  return text_of(channel_sources(model, model.layers.back()));
}

}  // namespace

TEST_CASE("locality: channels that a layer passes on, picks, reorders or works on one by one") {
  CHECK(sources_of("{name: r, kind: relu}") == "*0 *1 *2 *3 *4 *5 ");
  CHECK(sources_of("{name: b, kind: batch_norm}") == "*0 *1 *2 *3 *4 *5 ");
  CHECK(sources_of("{name: s, kind: slice, first: 1, last: 6, step: 2}") == "0.1 0.3 0.5 ");
  CHECK(sources_of("{name: s, kind: slice, axis: 1, first: 1, last: 3}") == "");
  // torch's channel_shuffle: [groups, channels / groups] transposed.
  CHECK(sources_of("{name: s, kind: channel_shuffle, groups: 2}") == "0.0 0.3 0.1 0.4 0.2 0.5 ");
  CHECK(
      sources_of("{name: a, kind: relu}, {name: s, kind: slice, first: 0, last: 2}, {name: c, kind: concat, "
                 "inputs: [a, s]}") == "0.0 0.1 0.2 0.3 0.4 0.5 1.0 1.1 ");
  CHECK(sources_of("{name: p, kind: max_pool, kernel: 2, stride: 2}, {name: f, kind: flatten}")
            .starts_with("0.0 0.0 0.0 0.0 0.1 "));
  for (const char* mixes : {"{name: c, kind: conv2d, out_channels: 6, kernel: 1}", "{name: s, kind: softmax}",
                            "{name: l, kind: local_response_norm, size: 3}",
                            "{name: f, kind: flatten}, {name: l, kind: linear, "
                            "out_features: 6}"})
    CHECK(sources_of(mixes) == "");
}

TEST_CASE("locality: rows are the same but for windows, which say which they read") {
  const Model model = small_model(
      "{name: conv, kind: conv2d, out_channels: 2, kernel: 3, padding: 1}, {name: relu, kind: relu}, {name: "
      "cut, "
      "kind: slice, axis: 1, first: 1, last: 3}, {name: pool, kind: adaptive_avg_pool, size: 1}");
  const auto& layers = model.layers;
  CHECK(is_spatial(layers[0]));
  CHECK(reads_windows(layers[0], ImageAxis::height));
  CHECK(rows_read(layers[0], ImageAxis::height, 4, 0) == std::vector<std::int64_t>{0, 1});
  CHECK(is_spatial(layers[1]));
  CHECK_FALSE(reads_windows(layers[1], ImageAxis::height));
  CHECK(reads_windows(layers[2], ImageAxis::height));
  CHECK_FALSE(reads_windows(layers[2], ImageAxis::width));
  CHECK(rows_read(layers[2], ImageAxis::height, 4, 1) == std::vector<std::int64_t>{2});
  CHECK_FALSE(is_spatial(layers[3]));
}
