// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "sim/base/keys.h"
#include "strategies/hybrid/add_layout.h"

namespace convoy::inline strategies {

/// How a layer's work is shared out in a group of devices.
enum class LayerLayout : std::uint8_t {
  batch,       ///< by images
  filter,      ///< by output channels or features
  channel,     ///< by input channels or features
  height,      ///< by rows
  width,       ///< by columns
  grid,        ///< by rows and columns
  replicated,  ///< everyone does all of it
  added,       ///< as a LayoutEntry says
};
std::string_view to_string(LayerLayout layout);  ///< not of `added`
/// Whether devices have parts of the images: rows, columns or both.
inline bool is_by_space(LayerLayout layout) {
  return layout == LayerLayout::height || layout == LayerLayout::width || layout == LayerLayout::grid;
}
/// Of so many parts of the rows and columns: "height 2 x width 4".
std::string grid_text(const Size2& grid);

/// An entry of the strategy's YAML that gives layers a layout.
struct LayoutRule {
  std::string path;                    ///< "strategy.conv", "strategy.groups.0.layout"
  SourcePos pos;                       ///< of the layout
  std::vector<LayerLayout> turns;      ///< layers get them in turn: one, or filter and channel (`pairs`)
  Size2 grid{};                        ///< of LayerLayout::grid: parts of the rows and of the columns
  const LayoutEntry* added = nullptr;  ///< of LayerLayout::added
  std::string kind = {};               ///< "conv", "fc" or a layer kind; "": any
  SourcePos kind_pos = {};
  std::vector<std::string> layers = {};  ///< none: any; one: a name or a pattern with *; two: from and to
  SourcePos layers_pos = {};
  std::string text = {};  ///< for labels: "conv batch"
};

/// `conv`, `fc` and `groups` of a strategy, in this order.
const Keys<std::vector<LayoutRule>>& layout_keys();

/// What the rules say of a layer.
struct DecidedLayout {
  std::optional<LayerLayout> layout;  ///< nothing: it follows its input
  std::string path;                   ///< of the rule, for errors
  SourcePos pos;
  Size2 grid{};                        ///< of LayerLayout::grid: parts of the rows and of the columns
  const LayoutEntry* added = nullptr;  ///< of LayerLayout::added
};

/// Layouts of the layers of a model: of rules that name a layer the last one counts; convolutions, linear
/// and custom layers that none names are `batch`, other layers follow their input. A rule for several layers
/// leaves those to follow that have no weights and cannot have its layout.
/// @throws InputError where a rule names no layer, or a convolution, linear or custom layer that cannot have
/// its layout.
std::vector<DecidedLayout> decide_layouts(const Model& model, const std::vector<LayoutRule>& rules,
                                          const SourcePos& pos);

}  // namespace convoy::strategies
