// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "models/model.h"

namespace convoy::inline models {

/// The model as a file that `model: {file: FILE}` reads (docs/models.md), a line a layer. What read_model makes
/// of it has the same layers, in the same order, with the same shapes and parameters. Warnings are left out.
std::string model_file(const Model& model);

}  // namespace convoy::models
