// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/yaml_node.h"

namespace convoy::inline base {

/// Folder of the program's own data ("models/zoo", "topologies/catalog/devices", "configs",
/// "results/published"): ../share/convoy next to an installed program, otherwise the source tree from which
/// it was built.
/// @throws std::runtime_error if neither exists.
std::string data_path(const std::string& folder);

/// The path of another program of convoy's, which is beside this one, or where an installed or built Python
/// module finds it; "" where there is none.
std::string program_beside(const std::string& name);

/// Folders of the data that simulations depend on: they are a part of the program (store/point_key.h).
inline constexpr std::array digested_data_folders{"models/zoo", "models/data", "topologies/catalog"};

/// Names (without ".yaml") of the YAML files directly in data_path(folder), sorted. A folder is read once:
/// the program's data do not change while it runs.
const std::vector<std::string>& data_names(const std::string& folder);

/// The content of data_path(folder)/name.yaml, read once. @throws InputError: the file is wrong
const YamlNode& data_yaml(const std::string& folder, const std::string& name);

}  // namespace convoy::base
