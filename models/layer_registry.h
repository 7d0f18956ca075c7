// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

#include "models/layer.h"
#include "sim/base/yaml_map.h"

namespace convoy {

/// One layer kind as users write it. Error messages and the documentation's test read this table.
struct LayerEntry {
  std::string_view kind;
  std::string_view summary;
  LayerKind (*read)(YamlMap& map);  ///< takes the kind's own keys
};

std::span<const LayerEntry> layer_registry();

/// Reads the kind of a layer and its keys (all but `name`, `kind` and `inputs`). @throws InputError
LayerKind read_layer_kind(YamlMap& map);

}  // namespace convoy
