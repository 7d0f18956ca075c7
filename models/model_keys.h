// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::inline models {

/// What `convoy show keys` tells of a `model:`, in each of its forms.
KeySection model_keys();
/// The same of an entry of a model's `layers`.
KeySection layer_keys();
/// Names of all parameters that models of the zoo have, sorted.
std::vector<std::string> zoo_parameters();

}  // namespace convoy::models
