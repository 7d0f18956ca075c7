// SPDX-License-Identifier: MIT
#include "sim/run/manifest.h"

#include <iterator>

#include "sim/base/digest.h"
#include "sim/base/input_file.h"
#include "sim/replay/engine.h"

namespace convoy::inline runs {

std::string_view version() { return CONVOY_VERSION; }

Manifest make_manifest(const Experiment& experiment, const std::string& file,
                       const std::vector<std::string>& settings) {
  Manifest manifest{
      std::string(version()), Engine::simgrid_version(), {}, sha256(experiment.content()), settings, {}};
  if (file.empty()) return manifest;
  std::ifstream in = open_input(file);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  manifest.inputs = {{file, sha256(bytes)}};
  return manifest;
}

}  // namespace convoy::runs
