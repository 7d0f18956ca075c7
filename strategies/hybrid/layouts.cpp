// SPDX-License-Identifier: MIT
#include "strategies/hybrid/layouts.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <set>

#include "models/locality.h"
#include "sim/base/names.h"
#include "sim/lowering/plan_ops.h"

namespace convoy::inline strategies {
namespace {

constexpr std::string_view grid_words = "{height: ROWS, width: COLUMNS}";
constexpr std::array<std::string_view, 7> names{"batch", "filter",   "channel",   "height",
                                                "width", grid_words, "replicated"};
const std::vector<std::string> layout_words{"batch",  "filter", "channel",   "pairs",
                                            "height", "width",  "replicated"};

std::vector<LayerLayout> turns_of(std::size_t word) {
  static const std::vector<std::vector<LayerLayout>> table{
      {LayerLayout::batch},     {LayerLayout::filter},
      {LayerLayout::channel},   {LayerLayout::filter, LayerLayout::channel},
      {LayerLayout::height},    {LayerLayout::width},
      {LayerLayout::replicated}};
  return table[word];
}

LayoutRule read_rule(YamlMap& map, std::string_view key, std::string kind) {
  LayoutRule rule{map.path_of(key), map.pos(key), {LayerLayout::grid}, {}, std::move(kind)};
  const YamlNode& node = map.node(key);
  if (node.kind == YamlNode::Kind::mapping) {
    constexpr std::int64_t most_parts = 1'000'000;
    if (!node.find("height") && !node.find("width"))
      map.fail(key, fmt::format("a mapping is a grid, {}; any other layout is one word of {}", grid_words,
                                list_of(layout_words)));
    YamlMap grid = map.map(key);
    rule.grid = {grid.integer("height", 1, most_parts), grid.integer("width", 1, most_parts)};
    grid.finish();
    rule.text = grid_text(rule.grid);
  } else {
    const std::size_t word = map.choice(key, layout_words, grid_words);
    rule.turns = turns_of(word);
    rule.text = layout_words[word];
  }
  return rule;
}

LayoutRule read_group(YamlMap& map) {
  LayoutRule rule = read_rule(map, "layout", "");
  std::string what;
  if (const YamlNode* kind = map.find("kind")) {
    rule.kind_pos = kind->pos;
    rule.kind = what = map.text("kind");
  }
  if (const YamlNode* layers = map.find("layers")) {
    rule.layers_pos = layers->pos;
    if (layers->kind == YamlNode::Kind::sequence) {
      if (layers->items.size() != 2)
        map.fail("layers", "expected a name, a pattern such as 'layer4.*', or [first, last]");
      for (const YamlNode& item : layers->items)
        rule.layers.push_back(read_text(item, map.path_of("layers")));
      what = fmt::format("{} to {}", rule.layers[0], rule.layers[1]);
    } else {
      rule.layers.push_back(map.text("layers"));
      what = rule.layers[0];
    }
  }
  if (what.empty()) map.fail("says of no layers which it means; give layers or kind");
  map.finish();
  rule.text = fmt::format("{} {}", what, rule.text);
  return rule;
}

/// The rule of `conv` or `fc`.
void read_kind(YamlMap& map, const std::string& kind, std::vector<LayoutRule>& rules) {
  if (!map.find(kind)) return;
  rules.push_back(read_rule(map, kind, kind));
  rules.back().text = fmt::format("{} {}", kind, rules.back().text);
}

/// Layers that get a layout of their own; the others may follow.
bool decides(const Layer& layer) {
  return is_convolution(layer) || std::holds_alternative<Linear>(layer.kind) ||
         std::holds_alternative<Custom>(layer.kind);
}

bool is_of_kind(const Layer& layer, const std::string& kind) {
  if (kind == "conv") return is_convolution(layer);
  if (kind == "fc") return std::holds_alternative<Linear>(layer.kind);
  return kind == kind_name(layer.kind);
}

bool has_groups(const Layer& layer) {
  if (const auto* conv = std::get_if<Conv2d>(&layer.kind)) return conv->groups > 1;
  if (const auto* conv = std::get_if<ConvTranspose2d>(&layer.kind)) return conv->groups > 1;
  return false;
}

bool can_have(const Layer& layer, LayerLayout layout) {
  switch (layout) {
    case LayerLayout::batch:
    case LayerLayout::replicated:
      return true;
    case LayerLayout::filter:
      return decides(layer) && (is_convolution(layer) || layer.output.size() == 1);
    case LayerLayout::channel:
      return can_have(layer, LayerLayout::filter) && !has_groups(layer);
    case LayerLayout::height:
    case LayerLayout::width:
    case LayerLayout::grid:
      break;
  }
  return is_spatial(layer);
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
  throw InputError(
      rule.pos, fmt::format("{}: layer '{}' ({}{}) cannot be shared out by {}; allowed for it: {}", rule.path,
                            layer.name, kind_name(layer.kind), has_groups(layer) ? " with groups" : "",
                            to_string(layout), able));
}

void apply(const Model& model, const LayoutRule& rule, std::vector<DecidedLayout>& layouts) {
  const std::vector<std::size_t> layers = named(model, rule);
  std::size_t turn = 0;
  bool any = layers.empty();
  for (const std::size_t i : layers) {
    const Layer& layer = model.layers[i];
    const LayerLayout layout = rule.turns[turn % rule.turns.size()];
    const bool able = can_have(layer, layout);
    if (decides(layer)) {
      if (!able) fail_unable(rule, layer, layout);
      ++turn;
    }
    if (!able) continue;
    layouts[i] = {layout, rule.path, rule.pos, rule.grid};
    any = true;
  }
  if (!any) fail_unable(rule, model.layers[layers.front()], rule.turns.front());
}

}  // namespace

std::string_view to_string(LayerLayout layout) { return names[static_cast<std::size_t>(layout)]; }

std::string grid_text(const Size2& grid) { return fmt::format("height {} x width {}", grid.h, grid.w); }

const Keys<std::vector<LayoutRule>>& layout_keys() {
  using Rules = std::vector<LayoutRule>;
  static const Keys<Rules> keys{
      custom_key<Rules>(
          "conv", "batch | filter | channel | pairs | height | width | {height, width} | replicated",
          "layout of convolutions", [](YamlMap& map, Rules& rules) { read_kind(map, "conv", rules); }),
      custom_key<Rules>("fc", "batch | filter | channel | pairs | replicated", "layout of linear layers",
                        [](YamlMap& map, Rules& rules) { read_kind(map, "fc", rules); }),
      list_key<Rules>("groups", "a list of {layers, kind, layout}",
                      "layouts by name, pattern, [first, last] or kind; the last that names a layer counts",
                      [](YamlMap& map, Rules& rules) {
                        if (!map.find("groups")) return;
                        for (YamlMap& group : map.maps("groups")) rules.push_back(read_group(group));
                      })};
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
