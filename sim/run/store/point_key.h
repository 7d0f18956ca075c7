// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sim/base/yaml_node.h"

namespace convoy::inline runs {

/// Digest of everything on which each run depends besides its experiment: this program as it was built,
/// SimGrid, and the files of the catalogue and of the zoo.
std::string program_digest();

/// Digests by which a store identifies points: of the content of the point (its parts with sweep and settings
/// applied, without the name of the experiment), of the files from which its parts were read, of the program,
/// and of the options that change the result of a run.
class PointKeys {
 public:
  explicit PointKeys(const std::string& options);
  /// @param resolved Experiment::resolved() of the point
  /// @param inputs what Preparer::read_parts returned for it
  std::string key(const YamlNode& resolved, const std::string& inputs) const;

 private:
  std::string common_;
};

}  // namespace convoy::runs
