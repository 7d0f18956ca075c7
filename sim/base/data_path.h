// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace convoy {

/// Folder of the program's own data ("models/zoo", "topologies/catalog/devices", "configs",
/// "results/published"): beside an installed program in ../share/convoy, else in the source tree it was built
/// from.
/// @throws std::runtime_error when neither exists.
std::string data_path(const std::string& folder);

/// Names (without ".yaml") of the YAML files directly in data_path(folder), sorted.
std::vector<std::string> data_names(const std::string& folder);

}  // namespace convoy
