// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "models/expand.h"
#include "models/layer_order.h"
#include "models/layer_profile.h"
#include "models/layer_registry.h"
#include "models/model.h"
#include "models/onnx/onnx_import.h"
#include "models/shapes.h"
#include "sim/base/data_path.h"
#include "sim/base/document_kind.h"
#include "sim/base/named_file.h"
#include "sim/base/names.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_side = 1'000'000;

Shape read_input(YamlMap& map) {
  const YamlNode& node = map.node("input");
  const bool list = node.kind == YamlNode::Kind::sequence;
  if (!list || (node.items.size() != 3 && node.items.size() != 1))
    map.fail("input", fmt::format("expected [channels, height, width] or [features], found {}",
                                  list ? fmt::format("a list of {}", node.items.size()) : describe(node)));
  Shape shape;
  for (std::size_t i = 0; i < node.items.size(); ++i)
    shape.push_back(read_integer(node.items[i], fmt::format("{}[{}]", map.path_of("input"), i), 1, max_side));
  return shape;
}

/// A value for a parameter must be of its default's kind: whole numbers, true or false, or a list of as many
/// numbers.
void check_parameter(const YamlNode& value, const YamlNode& fallback, const std::string& path) {
  if (fallback.kind == YamlNode::Kind::sequence) {
    if (value.kind != YamlNode::Kind::sequence || value.items.size() != fallback.items.size())
      throw InputError(value.pos, fmt::format("{}: expected a list of {} whole numbers such as {}, found {}",
                                              path, fallback.items.size(), to_flow(fallback),
                                              value.kind == YamlNode::Kind::sequence
                                                  ? fmt::format("a list of {}", value.items.size())
                                                  : describe(value)));
    for (std::size_t i = 0; i < value.items.size(); ++i)
      check_parameter(value.items[i], fallback.items[i], fmt::format("{}[{}]", path, i));
  } else if (fallback.scalar == "true" || fallback.scalar == "false") {
    if (value.kind != YamlNode::Kind::scalar || (value.scalar != "true" && value.scalar != "false"))
      throw InputError(value.pos, fmt::format("{}: expected true or false, found {}", path, describe(value)));
  } else {
    read_integer(value, path, 1, 1'000'000'000);
  }
}

/// Parameters with their defaults, overridden by the mapping that refers to the model.
Scope read_parameters(YamlMap& definition, YamlMap* reference, Scope scope) {
  const YamlNode* defaults = definition.find("parameters");
  if (!defaults) return scope;
  YamlMap map(*defaults, definition.path_of("parameters"));
  for (const std::string& name : map.keys()) {
    const YamlNode& fallback = map.node(name);
    if (name == "name" || name == "file" || name == "input" || name == "onnx")
      map.fail(name, "is a key of every model and cannot be a parameter");
    check_parameter(fallback, fallback, map.path_of(name));
    const YamlNode* given = reference ? reference->find(name) : nullptr;
    if (given) check_parameter(*given, fallback, reference->path_of(name));
    scope[name] = given ? *given : fallback;
  }
  return scope;
}

std::vector<Layer> read_layers(const std::vector<LayerDraft>& drafts, const std::string& path,
                               const Shape& input) {
  std::vector<std::vector<LayerIndex>> inputs;
  inputs.reserve(drafts.size());
  for (const LayerDraft& draft : drafts) inputs.push_back(draft.inputs);
  const LayerOrder sorted = order_layers(inputs);
  if (!sorted.cycle.empty()) {
    std::string names;
    for (const LayerIndex i : sorted.cycle) names += drafts[static_cast<std::size_t>(i)].name + " -> ";
    const LayerDraft& first = drafts[static_cast<std::size_t>(sorted.cycle.front())];
    throw InputError(first.node.pos, fmt::format("{}: the layers read one another in a circle: {}{}", path,
                                                 names, first.name));
  }
  std::vector<LayerIndex> place(drafts.size());
  for (std::size_t i = 0; i < sorted.order.size(); ++i)
    place[static_cast<std::size_t>(sorted.order[i])] = static_cast<LayerIndex>(i);

  std::vector<Layer> layers;
  layers.reserve(drafts.size());
  std::int64_t parameters = 0, macs = 0;
  for (const LayerIndex from : sorted.order) {
    const LayerDraft& draft = drafts[static_cast<std::size_t>(from)];
    YamlMap map(draft.node, fmt::format("{}.{}", path, draft.name));
    for (const char* taken : {"name", "inputs", "when"}) map.find(taken);
    Layer layer;
    layer.name = draft.name;
    layer.pos = draft.node.pos;
    layer.kind = read_layer_kind(map);
    map.finish();
    std::vector<Shape> shapes;
    for (const LayerIndex read : draft.inputs) {
      layer.inputs.push_back(read == image_input ? image_input : place[static_cast<std::size_t>(read)]);
      shapes.push_back(read == image_input ? input
                                           : layers[static_cast<std::size_t>(layer.inputs.back())].output);
    }
    infer_shape(layer, shapes);
    parameters += layer.parameter_elements();
    macs += layer.macs;
    if (parameters > YamlMap::max_integer || macs > YamlMap::max_integer)
      throw InputError(
          layer.pos,
          fmt::format("layer '{}': up to here the model has more than 2^53 parameters or multiply-adds",
                      layer.name));
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// A model written out: zoo file, model file or inline.
/// @param reference the mapping that names a zoo model or file and overrides its input and parameters, if any
/// @param given parameters that are part of the model's name
/// @param input in place of what the others say
Model read_definition(const YamlNode& node, const std::string& path, YamlMap* reference,
                      const Scope& given = {}, const Shape* input = nullptr) {
  YamlMap map(node, path);
  Model model;
  model.name = map.text("name");
  model.input = read_input(map);
  if (reference && reference->find("input")) model.input = read_input(*reference);
  if (input) model.input = *input;
  const std::vector<std::string> losses{"none", "cross_entropy"};
  model.cross_entropy_loss = map.choice_or("loss", losses, 0) == 1;
  const Scope parameters = read_parameters(map, reference, given);

  Blocks blocks;
  std::optional<YamlNode> shared;  // outlives the blocks that point into it
  if (map.has("blocks_from")) {
    shared = load_yaml(named_file(map, "blocks_from"));
    YamlMap file(*shared, "");
    read_blocks(file.node("blocks"), "blocks", blocks);
    file.finish();
  }
  if (const YamlNode* own = map.find("blocks")) read_blocks(*own, map.path_of("blocks"), blocks);
  const YamlNode& layers = map.node("layers");
  map.finish();
  if (layers.kind == YamlNode::Kind::sequence && layers.items.empty())
    map.fail("layers", "must have at least one layer");
  const std::string layers_path = map.path_of("layers");
  const std::vector<LayerDraft> drafts = expand_layers(layers, layers_path, blocks, parameters);
  if (drafts.empty()) map.fail("layers", "must have at least one layer");
  model.layers = read_layers(drafts, layers_path, model.input);
  return model;
}

/// Matches "wrn_28_10" with the pattern "wrn_DEPTH_WIDTH": words in capitals stand for whole numbers.
std::optional<Scope> match_pattern(std::string_view pattern, std::string_view name, const SourcePos& pos) {
  Scope scope;
  const auto next_word = [](std::string_view& text) {
    const std::size_t end = std::min(text.find('_'), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  while (!pattern.empty() && !name.empty()) {
    const std::string_view want = next_word(pattern), have = next_word(name);
    const bool capitals =
        !want.empty() && std::all_of(want.begin(), want.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!capitals) {
      if (want != have) return std::nullopt;
      continue;
    }
    const bool digits = !have.empty() && have.size() <= 9 && have[0] != '0' &&
                        std::all_of(have.begin(), have.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return std::nullopt;
    std::string key(want);
    for (char& c : key) c = static_cast<char>(c - 'A' + 'a');
    YamlNode value;
    value.kind = YamlNode::Kind::scalar;
    value.scalar = std::string(have);
    value.pos = pos;
    scope[key] = value;
  }
  if (!pattern.empty() || !name.empty() || scope.empty()) return std::nullopt;
  return scope;
}

/// What can be built near to what was asked for and cannot: "; input: [3, 64, 64] can be built", of a family
/// "; wrn_28_10 can be built"; "" where nothing near can.
std::string buildable_near(const YamlNode& definition, const std::string& name, YamlMap* reference,
                           const Scope& given) {
  const auto builds = [&](const Scope& scope, const Shape* input) {
    try {
      read_definition(definition, "", reference, scope, input);
      return true;
    } catch (const InputError&) {
      return false;
    }
  };
  if (reference && reference->find("input")) {
    Shape shape = read_input(*reference);
    for (const std::int64_t side : {32, 64, 96, 128, 160, 192, 224, 256, 299, 384, 512}) {
      if (shape.size() != 3 || (side <= shape[1] && side <= shape[2])) continue;
      const Shape larger{shape[0], std::max(shape[1], side), std::max(shape[2], side)};
      if (builds(given, &larger)) return fmt::format("; input: [{}] can be built", fmt::join(larger, ", "));
    }
  }
  constexpr std::int64_t farthest = 8;
  for (std::int64_t distance = 1; distance <= farthest; ++distance)
    for (const auto& [key, value] : given)
      for (const std::int64_t step : {-distance, distance}) {
        Scope scope = given;
        const std::int64_t number = std::stoll(value.scalar) + step;
        scope[key].scalar = std::to_string(number);
        if (number < 1 || !builds(scope, nullptr)) continue;
        std::string near = name + '_';  // so that "_1_" is not found in "wrn_16_1"
        near.replace(near.find('_' + value.scalar + '_') + 1, value.scalar.size(), scope[key].scalar);
        near.pop_back();
        return fmt::format("; {} can be built", near);
      }
  return "";
}

Model read_zoo(const std::string& name, const SourcePos& pos, const std::string& path, YamlMap* reference) {
  const std::vector<std::string> names = zoo_names();
  std::string file;
  Scope given;
  for (const std::string& known : names) {
    const bool is_pattern =
        std::any_of(known.begin(), known.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (known == name && !is_pattern) file = known;
    if (const std::optional<Scope> match = match_pattern(known, name, pos)) {
      file = known;
      given = *match;
    }
  }
  const std::string ending = fs::path(name).extension().string();
  for (const auto& [of_files, key] :
       {std::pair{".yaml", "file"}, {".yml", "file"}, {".onnx", "onnx"}, {".csv", "profile"}})
    if (file.empty() && ending == of_files)
      throw InputError(pos, fmt::format("{}: '{}' is not a model of the zoo; a file is named by {{{}: {}}}",
                                        path, name, key, name));
  if (file.empty())
    throw InputError(
        pos, fmt::format("{}: unknown model '{}'{}; the zoo has: {}. A model of your own needs `layers`",
                         path, name, suggestion(name, names), list_of(names, names.size())));
  const std::string folder = data_path("models/zoo");
  const YamlNode definition = load_yaml(folder + "/" + file + ".yaml");
  try {
    Model model = read_definition(definition, "", reference, given);
    model.name = name;
    return model;
  } catch (const InputError& error) {
    // What the user asked for does not suit the zoo file (an image too small, a depth that does not exist).
    if (!std::string_view(error.what()).starts_with(folder)) throw;
    throw InputError(pos, fmt::format("{}: cannot build '{}' as asked for: {}{}", path, name, error.what(),
                                      buildable_near(definition, name, reference, given)));
  }
}

Model read_onnx(YamlMap& map) {
  OnnxOptions options;
  std::string file;
  if (const YamlNode* given = map.find("onnx"); given->kind == YamlNode::Kind::mapping) {
    YamlMap onnx(*given, map.path_of("onnx"));
    file = named_file(onnx, "file");
    options.restore_batch_norm = onnx.choice_or("batch_norm", {"restore", "keep_folded"}, 0) == 0;
    onnx.finish();
  } else {
    file = named_file(map, "onnx");
  }
  options.cross_entropy_loss = map.choice_or("loss", {"none", "cross_entropy"}, 1) == 1;
  if (map.has("input")) options.input = read_input(map);
  map.finish();
  Model model = import_onnx(load_onnx(file), file, options);
  model.name = fs::path(file).stem().string();
  return model;
}

Model read_profiled(YamlMap& map) {
  const std::string file = named_file(map, "profile");
  const std::string name = map.text_or("name", fs::path(file).stem().string());
  map.finish();
  return profiled_model(read_layer_profile(file), name);
}

}  // namespace

std::vector<std::string> zoo_names() { return data_names("models/zoo"); }

Model read_model(const YamlNode& node) {
  const std::string path = "model";
  if (node.kind == YamlNode::Kind::scalar) return read_zoo(node.scalar, node.pos, path, nullptr);
  if (node.kind != YamlNode::Kind::mapping)
    throw InputError(node.pos, fmt::format("{}: expected the name of a zoo model or a mapping, found {}",
                                           path, describe(node)));
  YamlMap map(node, path);
  if (map.has("onnx")) return read_onnx(map);
  if (map.has("profile")) return read_profiled(map);
  if (map.has("layers")) return read_definition(node, path, nullptr);
  if (map.has("file")) {
    const YamlNode definition = load_yaml(named_file(map, "file"));
    refuse_other_document(definition, DocumentKind::model);
    Model model = read_definition(definition, "", &map);
    map.finish();
    return model;
  }
  const std::string name = map.text("name");
  Model model = read_zoo(name, map.pos("name"), map.path_of("name"), &map);
  map.finish();
  return model;
}

}  // namespace convoy
