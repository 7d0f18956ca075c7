// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string>

#include "sim/cli/commands.h"

namespace convoy::inline cli {

/// `convoy show models NAME`: the layers of a zoo model, a YAML or an ONNX file as a table, JSON or a
/// Graphviz drawing; with a device, what each takes of a training step on it. Warnings go to standard error.
/// @throws InputError
void show_model(std::ostream& out, const ShowArguments& arguments);

/// One line about a zoo model.
std::string model_line(const std::string& name);

}  // namespace convoy::cli
