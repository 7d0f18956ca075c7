// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "models/expand.h"
#include "models/layer_order.h"
#include "models/layer_profile.h"
#include "models/layer_registry.h"
#include "models/model.h"
#include "models/model_forms.h"
#include "models/model_keys.h"
#include "models/shapes.h"
#include "models/unmeasured.h"
#include "sim/base/data_path.h"
#include "sim/base/document_kind.h"
#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/base/unexpected_value.h"

namespace convoy::inline models {
namespace {

namespace fs = std::filesystem;

constexpr const char* zoo_folder = "models/zoo";

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
      fail_unexpected(value, path, "true or false");
  } else {
    read_integer(value, path, 1, 1'000'000'000);
  }
}

/// Parameters with their defaults, overridden by the mapping that refers to the model.
Scope read_parameters(const YamlNode* defaults, const std::string& path, YamlMap* reference, Scope scope) {
  if (!defaults) return scope;
  YamlMap map(*defaults, path);
  for (const std::string& name : map.keys()) {
    const YamlNode& fallback = map.node(name);
    if (name == "name" || name == "file" || name == "input" || name == "onnx" || name == "profile" ||
        name == "layers")
      map.fail(name, "is a key of every model and cannot be a parameter");
    check_parameter(fallback, fallback, map.path_of(name));
    const YamlNode* given = reference ? reference->find(name) : nullptr;
    if (given) check_parameter(*given, fallback, reference->path_of(name));
    scope[name] = given ? *given : fallback;
  }
  return scope;
}

/// Parameters `height` and `width` that nobody gives are those of an image of another size that is asked for. A
/// model with one of them alone means something else by it (the channels of MobileNet's first convolution).
void follow_image(Scope& parameters, YamlMap* reference, const Shape& input) {
  constexpr std::size_t image_axes = 3;
  if (input.size() != image_axes || !parameters.contains("height") || !parameters.contains("width")) return;
  for (const auto& [name, axis] : {std::pair{"height", 1U}, std::pair{"width", 2U}})
    if (const auto found = parameters.find(name);
        found != parameters.end() && !(reference && reference->find(name)))
      found->second.scalar = std::to_string(input[axis]);
}

/// By draft: the first in `order` of those that use the same parameters, itself where they are its own.
std::vector<LayerIndex> find_owners(const std::vector<LayerDraft>& drafts,
                                    const std::vector<LayerIndex>& order) {
  std::vector<LayerIndex> named(drafts.size()), first(drafts.size(), image_input), owners(drafts.size());
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const LayerDraft* draft = &drafts[i];
    named[i] = static_cast<LayerIndex>(i);
    for (std::size_t hops = 0; draft->share && draft->share->owner != image_input; ++hops) {
      if (hops > drafts.size())
        throw InputError(draft->share->pos,
                         fmt::format("weights_of: '{}' would have the parameters of itself", draft->name));
      named[i] = draft->share->owner;
      draft = &drafts[static_cast<std::size_t>(named[i])];
    }
  }
  for (const LayerIndex i : order) {
    const LayerIndex of = named[static_cast<std::size_t>(i)];
    LayerIndex& owner = first[static_cast<std::size_t>(of)];
    if (owner == image_input) owner = i;
    owners[static_cast<std::size_t>(i)] = owner;
  }
  return owners;
}

/// Gives a layer, which has its own parameters, those of another layer. @throws InputError
void share_parameters(Layer& layer, const LayerDraft& draft, const Layer& owner, LayerIndex place) {
  const SourcePos pos = draft.share ? draft.share->pos : draft.node.pos;
  if (layer.parameters.empty() && owner.parameters.empty() && (!draft.share || draft.share->of_block)) return;
  if (layer.kind != owner.kind || layer.parameters != owner.parameters)
    throw InputError(
        pos, fmt::format("weights_of: '{}' and '{}' do not have the same kind, keys and numbers of "
                         "parameters ({} and {})",
                         layer.name, owner.name, layer.parameter_elements(), owner.parameter_elements()));
  if (layer.parameters.empty())
    throw InputError(pos,
                     fmt::format("weights_of: layers of kind {} have no parameters", kind_name(layer.kind)));
  if (layer.frozen != owner.frozen)
    throw InputError(
        pos, fmt::format("weights_of: of '{}' and '{}', which have the same parameters, one is frozen "
                         "and the other is not",
                         layer.name, owner.name));
  layer.shared_elements = layer.parameter_elements();
  layer.parameters.clear();
  layer.weights_of = place;
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
  const std::vector<LayerIndex> owners = find_owners(drafts, sorted.order);

  std::vector<Layer> layers;
  layers.reserve(drafts.size());
  std::int64_t parameters = 0, macs = 0;
  for (const LayerIndex from : sorted.order) {
    const LayerDraft& draft = drafts[static_cast<std::size_t>(from)];
    YamlMap map(draft.node, fmt::format("{}.{}", path, draft.name));
    for (const char* taken : {"name", "inputs", "when", "frozen", "weights_of"}) map.find(taken);
    Layer layer;
    layer.name = draft.name;
    layer.pos = draft.node.pos;
    layer.frozen = draft.frozen;
    layer.kind = read_layer_kind(map);
    std::vector<Shape> shapes;
    for (const LayerIndex read : draft.inputs) {
      layer.inputs.push_back(read == image_input ? image_input : place[static_cast<std::size_t>(read)]);
      shapes.push_back(read == image_input ? input
                                           : layers[static_cast<std::size_t>(layer.inputs.back())].output);
    }
    infer_shape(layer, shapes);
    if (const LayerIndex owner = owners[static_cast<std::size_t>(from)]; owner != from) {
      const LayerIndex at = place[static_cast<std::size_t>(owner)];
      share_parameters(layer, draft, layers[static_cast<std::size_t>(at)], at);
    } else if (draft.share && draft.share->owner == image_input && !layer.parameters.empty()) {
      throw InputError(draft.share->pos,
                       fmt::format("weights_of: there is no layer '{}', whose parameters '{}' would have",
                                   draft.share->name, layer.name));
    }
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

/// A line for each kind of layer of which no kernel and no network was measured (results/published).
std::vector<std::string> unmeasured_kinds(const std::vector<Layer>& layers) {
  std::vector<std::string> lines;
  for (const Layer& layer : layers) {
    const bool in_one_kernel = std::holds_alternative<Attention>(layer.kind);
    if (!is_unmeasured(layer, Framework::pytorch)) continue;
    std::string line = in_one_kernel
                           ? "attention that recomputes its scores (as pytorch does unless the layer says "
                             "`scores: kept`) is not measured; its time is that of matrix products"
                           : fmt::format(
                                 "layers of kind {} are not measured; their time is that of other "
                                 "kinds with as many FLOPs and bytes",
                                 kind_name(layer.kind));
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

/// A model written out: zoo file, model file or inline.
/// @param reference the mapping that names a zoo model or file and sets its parameters, if any
/// @param given parameters that are part of the model's name
/// @param input in place of the definition's, if any
Model read_definition(const YamlNode& node, const std::string& path, YamlMap* reference = nullptr,
                      const Scope& given = {}, const std::optional<Shape>& input = std::nullopt) {
  const YamlMap map(node, path);
  WrittenModel written;
  read_part(written_model_keys(), map, written);
  Model model;
  model.name = written.name;
  model.input = input.value_or(written.input);
  model.cross_entropy_loss = written.cross_entropy_loss;
  Scope parameters = read_parameters(written.parameters, map.path_of("parameters"), reference, given);
  if (input) follow_image(parameters, reference, *input);

  Blocks blocks;
  std::optional<YamlNode> shared;  // outlives the blocks that point into it
  if (written.blocks_from) {
    shared = load_yaml(*written.blocks_from);
    YamlMap file(*shared, "");
    read_blocks(file.node("blocks"), "blocks", blocks);
    file.finish();
  }
  if (written.blocks) read_blocks(*written.blocks, map.path_of("blocks"), blocks);
  const YamlNode& layers = *written.layers;
  if (layers.kind == YamlNode::Kind::sequence && layers.items.empty())
    map.fail("layers", "must have at least one layer");
  const std::string layers_path = map.path_of("layers");
  const std::vector<LayerDraft> drafts = expand_layers(layers, layers_path, blocks, parameters);
  if (drafts.empty()) map.fail("layers", "must have at least one layer");
  model.layers = read_layers(drafts, layers_path, model.input);
  model.warnings = unmeasured_kinds(model.layers);
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
                           const Scope& given, const std::optional<Shape>& asked) {
  const auto builds = [&](const Scope& scope, const std::optional<Shape>& input) {
    try {
      read_definition(definition, "", reference, scope, input);
      return true;
    } catch (const InputError&) {
      return false;
    }
  };
  if (asked) {
    const Shape& shape = *asked;
    for (const std::int64_t side : {32, 64, 96, 128, 160, 192, 224, 256, 299, 384, 512}) {
      if (shape.size() != 3 || (side <= shape[1] && side <= shape[2])) continue;
      const Shape larger{shape[0], std::max(shape[1], side), std::max(shape[2], side)};
      if (builds(given, larger)) return fmt::format("; input: [{}] can be built", fmt::join(larger, ", "));
    }
  }
  constexpr std::int64_t farthest = 8;
  for (std::int64_t distance = 1; distance <= farthest; ++distance)
    for (const auto& [key, value] : given)
      for (const std::int64_t step : {-distance, distance}) {
        Scope scope = given;
        const std::int64_t number = std::stoll(value.scalar) + step;
        scope[key].scalar = std::to_string(number);
        if (number < 1 || !builds(scope, asked)) continue;
        std::string near = name + '_';  // so that "_1_" is not found in "wrn_16_1"
        near.replace(near.find('_' + value.scalar + '_') + 1, value.scalar.size(), scope[key].scalar);
        near.pop_back();
        return fmt::format("; {} can be built", near);
      }
  return "";
}

/// Names of families have their parameters in capital letters.
bool is_pattern(const std::string& name) {
  return std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

/// The zoo's name of what a user calls a model: "ResNet-50" is resnet50, "WRN-28-10" wrn_28_10.
std::string zoo_name(const std::string& written, const std::vector<std::string>& names,
                     const SourcePos& pos) {
  std::vector<std::string> models;
  for (const std::string& name : names)
    if (!is_pattern(name)) models.push_back(name);
  std::string member = written;
  for (char& c : member) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string& name : names)
    if (match_pattern(name, member, pos)) return member;
  return meant(written, models);
}

/// @param input in place of the definition's, if any
Model read_zoo(const std::string& written, const SourcePos& pos, const std::string& path,
               YamlMap* reference = nullptr, const std::optional<Shape>& input = std::nullopt) {
  const std::vector<std::string> names = zoo_names();
  const std::string name = zoo_name(written, names, pos);
  std::string file;
  Scope given;
  for (const std::string& known : names) {
    if (known == name && !is_pattern(known)) file = known;
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
  if (file.empty()) {
    const std::string hint = suggestion(name, names);
    throw InputError(
        pos, fmt::format("{}: unknown model '{}'{}; {}. A model of your own needs `layers`", path, name, hint,
                         hint.empty() ? "the zoo has: " + list_of(names, names.size())
                                      : "`convoy show models` lists them"));
  }
  const std::string folder = data_path(zoo_folder);
  const YamlNode& definition = data_yaml(zoo_folder, file);
  try {
    Model model = read_definition(definition, "", reference, given, input);
    model.name = name;
    return model;
  } catch (const InputError& error) {
    // What the user asked for does not suit the zoo file (an image too small, a depth that does not exist).
    if (!std::string_view(error.what()).starts_with(folder)) throw;
    throw InputError(pos, fmt::format("{}: cannot build '{}' as asked for: {}{}", path, name, error.what(),
                                      buildable_near(definition, name, reference, given, input)));
  }
}

YamlNode load_model_file(const std::string& file) {
  YamlNode definition = load_yaml(file);
  refuse_other_document(definition, DocumentKind::model);
  return definition;
}

}  // namespace

std::vector<std::string> zoo_names() { return data_names(zoo_folder); }

std::vector<std::string> zoo_parameters() {
  std::set<std::string> names;
  for (const std::string& model : zoo_names())
    if (const YamlNode* parameters = data_yaml(zoo_folder, model).find("parameters"))
      for (const auto& [name, value] : parameters->entries) names.insert(name);
  return {names.begin(), names.end()};
}

Model read_model(const YamlNode& node) {
  const std::string path = "model";
  if (node.kind == YamlNode::Kind::scalar) return read_zoo(node.scalar, node.pos, path);
  if (node.kind != YamlNode::Kind::mapping)
    fail_unexpected(node, path, "the name of a zoo model or a mapping");
  YamlMap map(node, path);
  if (map.has("onnx")) {
    OnnxModel onnx;
    read_part(onnx_model_keys(), map, onnx);
    Model model = import_onnx(load_onnx(onnx.file), onnx.file, onnx.options);
    model.name = fs::path(onnx.file).stem().string();
    return model;
  }
  if (map.has("profile")) {
    ProfiledModel profiled;
    read_part(profiled_model_keys(), map, profiled);
    return profiled_model(read_layer_profile(profiled.file), profiled.name);
  }
  if (map.has("layers")) return read_definition(node, path);
  const bool of_file = map.has("file");
  NamedModel named;
  read_keys(of_file ? file_model_keys() : zoo_model_keys(), map, named);
  Model model = of_file ? read_definition(load_model_file(named.name), "", &map, {}, named.input)
                        : read_zoo(named.name, map.pos("name"), map.path_of("name"), &map, named.input);
  map.finish();
  return model;
}

}  // namespace convoy::models
