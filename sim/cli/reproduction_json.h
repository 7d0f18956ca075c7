// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "sim/studies/reproduce.h"
#include "sim/studies/thesis.h"

namespace convoy::inline cli {

/// What `convoy reproduce --json` prints.
struct Reproductions {
  std::vector<Reproduction> reproductions;
  std::optional<KernelReproduction> kernels;
  std::vector<ThesisReproduction> theses;
};
void write_reproductions(const Reproductions& document, std::ostream& out);
/// JSON Schema of it.
std::string reproductions_schema_text();

}  // namespace convoy::cli
