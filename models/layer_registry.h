// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "models/layer.h"
#include "sim/base/keys.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {

/// One layer kind as users write it.
struct LayerEntry {
  std::string_view kind;
  std::string_view summary;
  std::vector<KeyText> keys;  ///< the kind's own: all but `name`, `kind`, `inputs` and `when`
  /// Takes these keys; any other that has not been taken is an error. @throws InputError
  std::function<LayerKind(YamlMap& map)> read;
};

const std::vector<LayerEntry>& layer_registry();

/// Reads the kind of a layer and its keys, after which no other may be left. @throws InputError
LayerKind read_layer_kind(YamlMap& map);

}  // namespace convoy::models
