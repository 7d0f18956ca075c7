// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string>

#include "sim/base/yaml_node.h"

namespace convoy::inline models {

/// What names stand for while a model's blocks are written out: parameters and the arguments of a block.
using Scope = std::map<std::string, YamlNode, std::less<>>;

/// `node` with every plain scalar `$name` or `$name.index` replaced by its value and every `$(arithmetic)` by
/// its result (models/formula.h). Places stay those of `node`.
/// @throws InputError for unknown names, remainders, division by zero and text that is no expression.
YamlNode substitute(const YamlNode& node, const Scope& scope);

}  // namespace convoy::models
