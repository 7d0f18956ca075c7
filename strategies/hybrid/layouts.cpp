// SPDX-License-Identifier: MIT
#include "strategies/hybrid/layouts.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "models/locality.h"
#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline strategies {
namespace {

constexpr std::string_view grid_words = "{height: ROWS, width: COLUMNS}";
constexpr std::array<std::string_view, 7> names{"batch", "filter",   "channel",   "height",
                                                "width", grid_words, "replicated"};

struct LayoutWord {
  std::string text;
  std::vector<LayerLayout> turns;
};
const std::vector<LayoutWord> own_words{
    {"batch", {LayerLayout::batch}},          {"filter", {LayerLayout::filter}},
    {"channel", {LayerLayout::channel}},      {"pairs", {LayerLayout::filter, LayerLayout::channel}},
    {"height", {LayerLayout::height}},        {"width", {LayerLayout::width}},
    {"replicated", {LayerLayout::replicated}}};

/// Layouts of programs that are built with this library.
struct AddedLayouts {
  std::vector<LayoutEntry> entries;
  bool closed = false;  ///< the words are in use
};
AddedLayouts& added_layouts() {
  static AddedLayouts added;
  return added;
}

/// Those of own_words, and then the added ones.
const std::vector<std::string>& layout_words() {
  static const std::vector<std::string> words = [] {
    added_layouts().closed = true;
    std::vector<std::string> all;
    for (const LayoutWord& word : own_words) all.push_back(word.text);
    for (const LayoutEntry& entry : added_layouts().entries) all.emplace_back(entry.name);
    return all;
  }();
  return words;
}

/// `{height, width}`: a grid of parts of an image.
const Keys<Size2>& grid_keys() {
  constexpr std::int64_t most_parts = 1'000'000;
  static const Keys<Size2> keys{
      optional_integer_key<Size2>("height", "", 1, most_parts, "parts of an image's rows", &Size2::h)
          .required(),
      optional_integer_key<Size2>("width", "", 1, most_parts, "parts of its columns", &Size2::w).required()};
  return keys;
}

/// A layout by its word, or a grid. @param words for people, those that are of use
ValueForm layout_form(std::string words) {
  return forms::either({forms::name(layout_words()), forms::parts("{height, width}")}).said(std::move(words));
}

/// Sets what `key` says of the layout.
void read_layout(YamlMap& map, std::string_view key, LayoutRule& rule) {
  rule.path = map.path_of(key);
  rule.pos = map.pos(key);
  const YamlNode& node = map.node(key);
  if (node.kind == YamlNode::Kind::mapping) {
    if (!node.find("height") && !node.find("width"))
      map.fail(key, fmt::format("a mapping is a grid, {}; any other layout is one word of {}", grid_words,
                                list_of(layout_words())));
    rule.turns = {LayerLayout::grid};
    read_part(grid_keys(), map.map(key), rule.grid);
    rule.text = grid_text(rule.grid);
  } else {
    const std::size_t word = map.choice(key, layout_words(), grid_words);
    rule.text = layout_words()[word];
    if (word < own_words.size()) {
      rule.turns = own_words[word].turns;
    } else {
      rule.turns = {LayerLayout::added};
      rule.added = &added_layouts().entries[word - own_words.size()];
    }
  }
}

/// A name, a pattern, or [first, last].
void read_named_layers(YamlMap& map, LayoutRule& rule) {
  const YamlNode* layers = map.find("layers");
  if (!layers) return;
  rule.layers_pos = layers->pos;
  if (layers->kind != YamlNode::Kind::sequence) {
    rule.layers.push_back(map.text("layers"));
    return;
  }
  if (layers->items.size() != 2)
    map.fail("layers", "expected a name, a pattern such as 'layer4.*', or [first, last]");
  for (const YamlNode& item : layers->items) rule.layers.push_back(read_text(item, map.path_of("layers")));
}

/// An entry of `groups`.
const Keys<LayoutRule>& group_keys() {
  using Rule = LayoutRule;
  static const Keys<Rule> keys = [] {
    ValueForm ends = forms::list(forms::text("a name"), "[first, last]", 2);
    ends.max = 2;
    return Keys<Rule>{
        custom_key<Rule>("layout", "", layout_form("as conv"), "of these layers",
                         [](YamlMap& map, Rule& rule) { read_layout(map, "layout", rule); })
            .told_required()
            .with_parts(texts_of(grid_keys())),
        custom_key<Rule>("kind", "any", forms::text("conv | fc | a kind of layers"), "of the layers",
                         [](YamlMap& map, Rule& rule) {
                           if (!map.find("kind")) return;
                           rule.kind_pos = map.pos("kind");
                           rule.kind = map.text("kind");
                         }),
        custom_key<Rule>(
            "layers", "any",
            forms::either({forms::text("a name or a pattern such as 'layer4.*'"), std::move(ends)}),
            "by their names", &read_named_layers)};
  }();
  return keys;
}

LayoutRule read_group(YamlMap& map) {
  LayoutRule rule;
  read_part(group_keys(), map, rule);
  if (rule.layers.empty() && rule.kind.empty())
    map.fail("says of no layers which it means; give layers or kind");
  const std::string what = rule.layers.empty() ? rule.kind
                           : rule.layers.size() == 1
                               ? rule.layers[0]
                               : fmt::format("{} to {}", rule.layers[0], rule.layers[1]);
  rule.text = fmt::format("{} {}", what, rule.text);
  return rule;
}

/// The rule of `conv` or `fc`.
void read_kind(YamlMap& map, const std::string& kind, std::vector<LayoutRule>& rules) {
  if (!map.find(kind)) return;
  LayoutRule& rule = rules.emplace_back();
  rule.kind = kind;
  read_layout(map, kind, rule);
  rule.text = fmt::format("{} {}", kind, rule.text);
}

bool is_volume_convolution(const Layer& layer) {
  return std::holds_alternative<Conv3d>(layer.kind) || std::holds_alternative<ConvTranspose3d>(layer.kind);
}

bool is_any_convolution(const Layer& layer) { return is_convolution(layer) || is_volume_convolution(layer); }

/// Layers that get a layout of their own; the others may follow.
bool decides(const Layer& layer) {
  return is_any_convolution(layer) || std::holds_alternative<Linear>(layer.kind) ||
         std::holds_alternative<Custom>(layer.kind);
}

bool is_of_kind(const Layer& layer, const std::string& kind) {
  if (kind == "conv") return is_any_convolution(layer);
  if (kind == "fc") return std::holds_alternative<Linear>(layer.kind);
  return kind == kind_name(layer.kind);
}

bool has_groups(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) return conv->groups > 1;
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind)) return conv->groups > 1;
  if (const auto* conv = std::get_if<Conv3d>(&layer.kind)) return conv->groups > 1;
  if (const auto* conv = std::get_if<ConvTranspose3d>(&layer.kind)) return conv->groups > 1;
  return false;
}

bool is_by_channels(const Layer& layer) {
  const auto* linear = std::get_if<Linear>(&layer.kind);
  return linear && linear->channels;
}

bool can_have(const Layer& layer, LayerLayout layout) {
  switch (layout) {
    case LayerLayout::batch:
    case LayerLayout::replicated:
      return true;
    case LayerLayout::filter:
      return decides(layer) &&
             (is_any_convolution(layer) || layer.output.size() == 1 || is_by_channels(layer));
    case LayerLayout::channel:
      return can_have(layer, LayerLayout::filter) && !has_groups(layer);
    case LayerLayout::height:
    case LayerLayout::width:
    case LayerLayout::grid:
    case LayerLayout::added:
      break;
  }
  return is_spatial(layer);
}

bool can_have(const Layer& layer, const LayoutRule& rule, LayerLayout layout) {
  return layout == LayerLayout::added ? rule.added->fits(layer) : can_have(layer, layout);
}

/// The path of another key of the entry that a rule was read from.
std::string sibling(const LayoutRule& rule, std::string_view key) {
  return fmt::format("{}.{}", rule.path.substr(0, rule.path.rfind('.')), key);
}

std::size_t index_of(const Model& model, const LayoutRule& rule, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].name == name) return i;
    known.push_back(model.layers[i].name);
  }
  throw InputError(rule.layers_pos, fmt::format("{}: '{}' has no layer '{}'{}", sibling(rule, "layers"),
                                                model.name, name, suggestion(name, known)));
}

/// Layers that a rule names, in the model's order.
std::vector<std::size_t> named(const Model& model, const LayoutRule& rule) {
  std::size_t first = 0, last = model.layers.size() - 1;
  const bool range = rule.layers.size() == 2;
  if (range) {
    first = index_of(model, rule, rule.layers[0]);
    last = index_of(model, rule, rule.layers[1]);
    if (first > last)
      throw InputError(rule.layers_pos, fmt::format("{}: layer '{}' comes after '{}'",
                                                    sibling(rule, "layers"), rule.layers[0], rule.layers[1]));
  }
  std::vector<std::size_t> found;
  for (std::size_t i = first; i <= last; ++i) {
    const Layer& layer = model.layers[i];
    if (rule.layers.size() == 1 && fnmatch(rule.layers[0].c_str(), layer.name.c_str(), 0) != 0) continue;
    if (rule.kind.empty() || is_of_kind(layer, rule.kind)) found.push_back(i);
  }
  if (!found.empty() || rule.kind_pos.line + rule.layers_pos.line == 0) return found;
  if (rule.layers.size() == 1 && rule.kind.empty()) {
    if (rule.layers[0].find_first_of("*?[") == std::string::npos) index_of(model, rule, rule.layers[0]);
    throw InputError(rule.layers_pos, fmt::format("{}: no layer of '{}' has a name like '{}'",
                                                  sibling(rule, "layers"), model.name, rule.layers[0]));
  }
  std::set<std::string> kinds;
  for (const Layer& layer : model.layers) {
    kinds.emplace(kind_name(layer.kind));
    for (const char* both : {"conv", "fc"})
      if (is_of_kind(layer, both)) kinds.emplace(both);
  }
  throw InputError(rule.kind_pos,
                   fmt::format("{}: no layer{} is of kind '{}'; '{}' has {}", sibling(rule, "kind"),
                               rule.layers.empty() ? "" : " named there", rule.kind, model.name,
                               list_of(std::vector<std::string>(kinds.begin(), kinds.end()))));
}

[[noreturn]] void fail_unable(const LayoutRule& rule, const Layer& layer, LayerLayout layout) {
  std::string able;
  for (std::size_t l = 0; l < names.size(); ++l)
    if (can_have(layer, static_cast<LayerLayout>(l)))
      able += fmt::format("{}{}", able.empty() ? "" : ", ", names[l]);
  for (const LayoutEntry& entry : added_layouts().entries)
    if (entry.fits(layer)) able += fmt::format(", {}", entry.name);
  throw InputError(
      rule.pos, fmt::format("{}: layer '{}' ({}{}) cannot be shared out by {}; allowed for it: {}", rule.path,
                            layer.name, kind_name(layer.kind), has_groups(layer) ? " with groups" : "",
                            layout == LayerLayout::added ? rule.added->name : to_string(layout), able));
}

void apply(const Model& model, const LayoutRule& rule, std::vector<DecidedLayout>& layouts) {
  const std::vector<std::size_t> layers = named(model, rule);
  std::size_t turn = 0;
  bool any = layers.empty();
  for (const std::size_t i : layers) {
    const Layer& layer = model.layers[i];
    const LayerLayout layout = rule.turns[turn % rule.turns.size()];
    const bool able = can_have(layer, rule, layout);
    if (decides(layer)) {
      if (!able) fail_unable(rule, layer, layout);
      ++turn;
    }
    if (!able) continue;
    layouts[i] = {layout, rule.path, rule.pos, rule.grid, rule.added};
    any = true;
  }
  if (!any) fail_unable(rule, model.layers[layers.front()], rule.turns.front());
}

}  // namespace

std::string_view to_string(LayerLayout layout) { return names[static_cast<std::size_t>(layout)]; }

std::string grid_text(const Size2& grid) { return fmt::format("height {} x width {}", grid.h, grid.w); }

void add_layout(LayoutEntry entry) {
  AddedLayouts& added = added_layouts();
  if (added.closed)
    throw std::logic_error(fmt::format("layout '{}' is added too late: the keys are in use", entry.name));
  const auto is_it = [&](const auto& other) { return other == entry.name; };
  if (std::any_of(own_words.begin(), own_words.end(),
                  [&](const LayoutWord& word) { return is_it(word.text); }) ||
      std::any_of(added.entries.begin(), added.entries.end(),
                  [&](const LayoutEntry& other) { return is_it(other.name); }))
    throw std::logic_error(fmt::format("there is a layout '{}'", entry.name));
  added.entries.push_back(entry);
}

const Keys<std::vector<LayoutRule>>& layout_keys() {
  using Rules = std::vector<LayoutRule>;
  static const Keys<Rules> keys{
      custom_key<Rules>(
          "conv", "",
          layout_form("batch | filter | channel | pairs | height | width | {height, width} | replicated"),
          "layout of convolutions", [](YamlMap& map, Rules& rules) { read_kind(map, "conv", rules); })
          .with_parts(texts_of(grid_keys())),
      custom_key<Rules>("fc", "", layout_form("batch | filter | channel | pairs | replicated"),
                        "layout of linear layers",
                        [](YamlMap& map, Rules& rules) { read_kind(map, "fc", rules); }),
      list_key<Rules>("groups", "",
                      forms::list(forms::parts("{layers, kind, layout}"), "a list of {layers, kind, layout}"),
                      "layouts by name, pattern, [first, last] or kind; the last that names a layer counts",
                      [](YamlMap& map, Rules& rules) {
                        if (!map.find("groups")) return;
                        for (YamlMap& group : map.maps("groups")) rules.push_back(read_group(group));
                      })
          .with_parts(texts_of(group_keys()))};
  return keys;
}

std::vector<DecidedLayout> decide_layouts(const Model& model, const std::vector<LayoutRule>& rules,
                                          const SourcePos& pos) {
  std::vector<DecidedLayout> layouts;
  for (const Layer& layer : model.layers)
    layouts.push_back({decides(layer) ? std::optional(LayerLayout::batch) : std::nullopt, "strategy", pos});
  if (!model.layers.empty())
    for (const LayoutRule& rule : rules) apply(model, rule, layouts);
  return layouts;
}

}  // namespace convoy::strategies
