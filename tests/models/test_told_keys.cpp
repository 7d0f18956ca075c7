// SPDX-License-Identifier: MIT
// The keys that `convoy show keys` tells of models and layers are those that their readers take.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "models/expand.h"
#include "models/layer_registry.h"
#include "models/model_forms.h"
#include "models/model_keys.h"
#include "tests/models/model_text.h"
#include "tests/support/told_keys.h"

using namespace convoy;

namespace {

/// The error of reading a layer's kind, or a number that equal layers have in common.
std::string layer_said(const std::string& entries) {
  static std::vector<LayerKind> read_before;
  const YamlNode node = parse_yaml("{" + entries + "}", "told.yaml");
  try {
    YamlMap map(node, "");
    const LayerKind kind = read_layer_kind(map);
    const auto it = std::find(read_before.begin(), read_before.end(), kind);
    const auto number = it - read_before.begin();
    if (it == read_before.end()) read_before.push_back(kind);
    return fmt::format("layer {}", number);
  } catch (const InputError& error) {
    return error.what();
  }
}

/// The error of reading a model, or what its mapping decides.
std::string model_said(const std::string& entries) {
  const YamlNode node = parse_yaml("{" + entries + "}", "told.yaml");
  try {
    const Model model = read_model(node);
    std::string text = fmt::format("{} {} {}", model.name, to_string(model.input), model.cross_entropy_loss);
    for (const Layer& layer : model.layers)
      text += fmt::format("; {} {} {}", layer.name, kind_name(layer.kind), to_string(layer.output));
    return text;
  } catch (const InputError& error) {
    return error.what();
  }
}

template <class Form>
std::set<std::string> names_in(const Keys<Form>& keys) {
  return told::told_names(texts_of(keys));
}

std::set<std::string> joined(std::set<std::string> names, const std::vector<KeyText>& more) {
  for (const KeyText& key : more) names.insert(key.name);
  return names;
}

}  // namespace

TEST_CASE(
    "told keys: every kind of layer takes those that its row tells, and their defaults change nothing") {
  const std::map<std::string, std::string> least{
      {"conv2d", ", out_channels: 2, kernel: 3"},
      {"conv_transpose2d", ", out_channels: 2, kernel: 3"},
      {"deform_conv2d", ", out_channels: 2, kernel: 3"},
      {"conv3d", ", out_channels: 2, kernel: 3"},
      {"conv_transpose3d", ", out_channels: 2, kernel: 3"},
      {"attention", ", heads: 2"},
      {"max_pool3d", ", kernel: 3"},
      {"avg_pool3d", ", kernel: 3"},
      {"roi_align", ", rois: 2, size: 3"},
      {"side_input", ", output: [2]"},
      {"linear", ", out_features: 2"},
      {"group_norm", ", groups: 2"},
      {"channel_shuffle", ", groups: 2"},
      {"max_pool", ", kernel: 3"},
      {"avg_pool", ", kernel: 3"},
      {"slice", ", first: 1, last: 2"},
      {"reshape", ", output: [2]"},
      {"transpose", ", axes: [1, 0]"},
      {"custom", ", forward_flops: 1, backward_flops: 2, output: [2]"}};
  int defaults = 0;
  for (const LayerEntry& entry : layer_registry()) {
    CAPTURE(entry.kind);
    std::vector<KeyText> keys = entry.keys;
    keys.push_back({"kind", "a name", "said"});
    const auto it = least.find(std::string(entry.kind));
    defaults += told::check(keys, fmt::format("kind: {}{}", entry.kind, it == least.end() ? "" : it->second),
                            &layer_said);
  }
  CHECK(defaults >= 30);
}

TEST_CASE("told keys: a layer's own keys change what is read, each by itself") {
  for (const std::string entries :
       {"conv2d, out_channels: 2, kernel: 3, stride: 2", "conv2d, out_channels: 2, kernel: 3, bias: false",
        "linear, out_features: 2, last_axis: true",
        "conv_transpose2d, out_channels: 2, kernel: 3, output_padding: 1", "batch_norm, affine: false",
        "max_pool, kernel: 3, stride: 1", "max_pool, kernel: 3, padding: 1", "upsample, size: 4",
        "upsample, scale: 3", "slice, first: 1, last: 4, step: 2", "pad, bottom: 2",
        "elementwise, keeps_inputs: false", "dropout, rate: 0.1", "concat, axis: 1"}) {
    CAPTURE(entries);
    const std::string with = layer_said("kind: " + entries),
                      without = layer_said("kind: " + entries.substr(0, entries.rfind(", ")));
    CHECK(with.starts_with("layer "));
    CHECK(with != without);
  }
  CHECK(layer_said("kind: max_pool, kernel: [3, 1]") != layer_said("kind: max_pool, kernel: 3"));
  CHECK(layer_said("kind: max_pool, kernel: 3") == layer_said("kind: max_pool, kernel: 3, stride: 3"));
  CHECK(layer_said("kind: custom, forward_time: 1s, backward_time: 2s, output: [2], forward_flops: 1") ==
        "told.yaml:1:81: forward_flops: forward_time and backward_time are the whole cost; give these, or "
        "FLOPs "
        "and bytes");
  CHECK(layer_said("kind: upsample, size: 4, scale: 2") ==
        "told.yaml:1:34: scale: size is given too; give one of the two");
}

TEST_CASE("told keys: each form of a model takes those that its table tells") {
  const auto known = [](const std::string& entries) { return told::known_keys(model_said(entries)); };
  const std::string layers = "layers: [{name: a, kind: relu}]";
  CHECK(told::check(texts_of(written_model_keys()), "name: toy, input: [8], " + layers, &model_said) == 1);
  CHECK(known("onnx: x, zzzzzzzz: 1") == names_in(onnx_model_keys()));
  CHECK(known("onnx: {file: x, zzzzzzzz: 1}") == told::told_names(told::parts_of(model_keys().keys, "onnx")));
  CHECK(known("profile: x, zzzzzzzz: 1") == names_in(profiled_model_keys()));
  // Whoever names a model may set its parameters, so its keys are known with the definition's only.
  std::set<std::string> zoo = names_in(zoo_model_keys());
  zoo.insert("classes");
  CHECK(known("name: resnet18, zzzzzzzz: 1") == zoo);
  CHECK(model_said("name: alexnet, input: [3, 64, 64]") != model_said("name: alexnet"));
  CHECK(model_said("name: toy, input: [8], loss: cross_entropy, " + layers) !=
        model_said("name: toy, input: [8], " + layers));
}

TEST_CASE("told keys: entries of layers, uses of blocks and blocks take those that their tables tell") {
  const auto known = [](const std::string& blocks, const std::string& entry) {
    return told::known_keys(
        model_said("name: toy, input: [8], blocks: {b: {layers: [{name: r, kind: relu}], " + blocks +
                   "}}, layers: [{name: a, " + entry + "}]"));
  };
  const std::set<std::string> entries = told::told_names(entry_keys());
  CHECK(known("arguments: {}", "kind: relu, zzzzzzzz: 1") == joined(entries, {{"kind", "", ""}}));
  CHECK(known("arguments: {width: 1}", "block: b, zzzzzzzz: 1") ==
        joined(joined(entries, block_use_keys()), {{"width", "", ""}}));
  CHECK(known("zzzzzzzz: 1", "kind: relu") == told::told_names(block_keys()));
  for (const KeyText& key : block_use_keys())
    CHECK(model_said("name: toy, input: [8], blocks: {b: {arguments: {" + key.name +
                     ": 1}, layers: []}}, layers: []")
              .ends_with("blocks.b.arguments." + key.name +
                         ": is a key of every entry and cannot be an argument"));
}
