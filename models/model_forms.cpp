// SPDX-License-Identifier: MIT
#include "models/model_forms.h"

#include <fmt/format.h>

#include <filesystem>

#include "models/expand.h"
#include "models/layer_registry.h"
#include "models/model_keys.h"
#include "sim/base/key_kinds.h"
#include "sim/base/key_parts.h"
#include "sim/base/named_file.h"

namespace convoy::inline models {
namespace {

/// Of a parameter that a model's layers use.
ValueForm parameter_form() {
  const ValueForm number = forms::whole(1, 1'000'000'000);
  return forms::either({number, forms::flag(), forms::list(number, "a list")});
}

ValueForm image_form() {
  const ValueForm side = forms::whole(1, 1'000'000);
  ValueForm image = forms::list(side, "[channels, height, width]", 3),
            volume = forms::list(side, "[channels, depth, height, width]", 4),
            tokens = forms::list(side, "[channels, tokens]", 2),
            features = forms::list(side, "[features]", 1);
  image.max = 3;
  volume.max = 4;
  tokens.max = 2;
  features.max = 1;
  return forms::either({std::move(image), std::move(volume), std::move(tokens), std::move(features)});
}

Shape read_image(YamlMap& map) {
  constexpr std::int64_t max_side = 1'000'000;
  const YamlNode& node = map.node("input");
  const bool list = node.kind == YamlNode::Kind::sequence;
  if (!list || node.items.empty() || node.items.size() > 4)
    map.fail("input", fmt::format("expected [channels, height, width], [channels, depth, height, width], "
                                  "[channels, tokens] or [features], found {}",
                                  list ? fmt::format("a list of {}", node.items.size()) : describe(node)));
  Shape shape;
  for (std::size_t i = 0; i < node.items.size(); ++i)
    shape.push_back(read_integer(node.items[i], fmt::format("{}[{}]", map.path_of("input"), i), 1, max_side));
  return shape;
}

/// `input` where it may be left out. @param field std::optional<Shape>& (Form&)
template <class Form, class Field>
Key<Form> own_image_key(std::string otherwise, Field field) {
  KeyText text = key_text("input", std::move(otherwise), image_form(), "one image");
  text.takes_list = true;
  return {std::move(text), [field](YamlMap& map, Form& form) {
            if (map.find("input")) std::invoke(field, form) = read_image(map);
          }};
}

template <class Form>
Key<Form> file_key(std::string name, std::string values, std::string meaning) {
  Key<Form> key{key_text(name, "", forms::text(std::move(values)),
                         std::move(meaning) + ", beside the file that names it"),
                [name](YamlMap& map, Form& form) { form.file = named_file(map, name); }};
  return std::move(key).told_required();
}

const std::vector<std::string>& loss_names() {
  static const std::vector<std::string> names{"none", "cross_entropy"};
  return names;
}
constexpr const char* loss_meaning = "softmax cross entropy on every output";

Key<OnnxModel> onnx_file_key() { return file_key<OnnxModel>("file", "an ONNX file", "what is read"); }

const Keys<OnnxModel>& onnx_keys() {
  static const Keys<OnnxModel> keys{
      onnx_file_key(),
      choice_key<OnnxModel>("batch_norm", {"keep_folded", "restore"},
                            "normalization that the export folded into convolutions is put back, or not",
                            [](OnnxModel& model) -> bool& { return model.options.restore_batch_norm; })};
  return keys;
}

void read_onnx_key(YamlMap& map, OnnxModel& model) {
  if (map.node("onnx").kind == YamlNode::Kind::mapping)
    read_part(onnx_keys(), map.map("onnx"), model);
  else
    model.file = named_file(map, "onnx");
}

}  // namespace

const Keys<WrittenModel>& written_model_keys() {
  using W = WrittenModel;
  static const Keys<W> keys{
      custom_key<W>("name", "", forms::text("a name"), "of the model",
                    [](YamlMap& map, W& model) { model.name = map.text("name"); })
          .told_required(),
      list_key<W>("input", "", image_form(), "one image",
                  [](YamlMap& map, W& model) { model.input = read_image(map); })
          .told_required(),
      choice_key<W>("loss", loss_names(), loss_meaning, &W::cross_entropy_loss),
      custom_key<W>("parameters", "none", forms::entries(parameter_form(), "{name: default}"),
                    "whole numbers, switches and lists that layers use as $name; who names the model may set "
                    "them, by keys of their names",
                    [](YamlMap& map, W& model) { model.parameters = map.find("parameters"); }),
      custom_key<W>("blocks_from", "none", forms::text("a YAML file"), "with more blocks, beside this one",
                    [](YamlMap& map, W& model) {
                      if (map.find("blocks_from")) model.blocks_from = named_file(map, "blocks_from");
                    }),
      custom_key<W>("blocks", "none",
                    forms::entries(forms::parts("{arguments, layers}"), "{name: {arguments, layers}}"),
                    "lists of layers that entries use",
                    [](YamlMap& map, W& model) { model.blocks = map.find("blocks"); }),
      list_key<W>("layers", "", layers_form(1), "in any order (`convoy show keys layer`)",
                  [](YamlMap& map, W& model) { model.layers = &map.node("layers"); })
          .told_required()};
  return keys;
}

const Keys<NamedModel>& zoo_model_keys() {
  static const Keys<NamedModel> keys{
      custom_key<NamedModel>("name", "", forms::text("a name (`convoy show models`)", "models"),
                             "of a model of the zoo",
                             [](YamlMap& map, NamedModel& model) { model.name = map.text("name"); })
          .told_required(),
      own_image_key<NamedModel>("the definition's", &NamedModel::input)};
  return keys;
}

const Keys<NamedModel>& file_model_keys() {
  static const Keys<NamedModel> keys{
      custom_key<NamedModel>("file", "", forms::text("a YAML file"),
                             "with a model written out, beside the file that names it",
                             [](YamlMap& map, NamedModel& model) { model.name = named_file(map, "file"); })
          .told_required(),
      own_image_key<NamedModel>("the definition's", &NamedModel::input)};
  return keys;
}

const Keys<OnnxModel>& onnx_model_keys() {
  static const Keys<OnnxModel> keys{
      custom_key<OnnxModel>("onnx", "",
                            forms::either({forms::text("an ONNX file"),
                                           forms::parts(keys_detail::mapping_text(texts_of(onnx_keys())))}),
                            "what is read, beside the file that names it", &read_onnx_key)
          .told_required()
          .with_parts(texts_of(onnx_keys())),
      choice_key<OnnxModel>("loss", loss_names(), loss_meaning,
                            [](OnnxModel& model) -> bool& { return model.options.cross_entropy_loss; }),
      own_image_key<OnnxModel>(
          "the file's", [](OnnxModel& model) -> std::optional<Shape>& { return model.options.input; })};
  return keys;
}

const Keys<ProfiledModel>& profiled_model_keys() {
  static const Keys<ProfiledModel> keys{
      file_key<ProfiledModel>("profile", "a CSV file", "measured layers"),
      custom_key<ProfiledModel>("name", "as the file", forms::text("a name"), "of the model",
                                [](YamlMap& map, ProfiledModel& model) {
                                  model.name =
                                      map.text_or("name", std::filesystem::path(model.file).stem().string());
                                })};
  return keys;
}

KeySection model_keys() {
  std::vector<KeyText> written = texts_of(written_model_keys());
  for (KeyText& key : written)
    if (key.name == "blocks") key.parts = block_keys();
  const std::vector<KeyText> zoo = texts_of(zoo_model_keys()), file = texts_of(file_model_keys()),
                             onnx = texts_of(onnx_model_keys()), profile = texts_of(profiled_model_keys());
  KeySection section{
      "model", "what is trained: a name of the zoo, or a mapping in one of five forms",
      texts_of_variants(
          {{"zoo", zoo}, {"file", file}, {"onnx", onnx}, {"profile", profile}, {"written out", written}})};
  section.variants = {{"onnx", "", onnx},
                      {"profile", "", profile},
                      {"layers", "", std::move(written)},
                      {"file", "", file},
                      {"name", "", zoo}};
  KeySection &of_zoo = section.variants.back(), &of_file = section.variants[3];
  of_zoo.further = of_file.further = parameter_form();
  of_zoo.further_names = zoo_parameters();
  return section;
}

KeySection layer_keys() {
  std::vector<KeyText> entry = entry_keys(), use = block_use_keys();
  KeySection of_kind = section_of_registry("kind", "", layer_registry());
  of_kind.keys.front().form.spelled = false;
  of_kind.keys.insert(of_kind.keys.begin(), entry.begin(), entry.end());
  KeySection section{"layer", "an entry of a model's `layers`", of_kind.keys};
  section.keys.insert(section.keys.end(), use.begin(), use.end());
  use.insert(use.begin(), entry.begin(), entry.end());
  section.variants = {{"block", "", std::move(use)}, std::move(of_kind)};
  section.variants.front().further = argument_form();
  return section;
}

}  // namespace convoy::models
