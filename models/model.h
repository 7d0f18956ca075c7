// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/yaml_map.h"

namespace convoy {

/// Shape of one image's tensor, without the batch dimension: {channels, height, width} or {features}.
using Shape = std::vector<std::int64_t>;
std::int64_t elements(const Shape& shape);

// The closed set of layers. Fields are those of the YAML entry of the same name; see docs in model.cpp's registry.
// (the models library completes this set)
struct Layer;

struct Model {
  std::string name;
  Shape input;
  std::vector<Layer> layers;  ///< topological order
};

}  // namespace convoy
