// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/yaml_node.h"

namespace convoy::inline results {

/// What results were computed from, beside what their manifest says: what a comparison of two results names
/// as the reasons of what changed. Stores keep it; results.json does not have it.
struct Origin {
  std::string build;    ///< of the program: its build id in hexadecimal
  YamlNode experiment;  ///< with settings in place, without `sweep`
  /// The program's data ("topologies/catalog/devices/k80.yaml") and the files that the experiment names, each
  /// with the SHA-256 of its content; in the order of their names.
  std::vector<std::pair<std::string, std::string>> files;
};

inline constexpr auto origin_fields = [](auto& archive, auto& origin) {
  archive.field("build", origin.build);
  archive.yaml("experiment", origin.experiment);
  archive.map("files", origin.files);
};

}  // namespace convoy::results
