// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <ostream>
#include <vector>

#include "sim/studies/reproduce.h"
#include "sim/studies/thesis.h"

namespace convoy::inline cli {

/// What `convoy reproduce --json` prints.
void write_reproductions(const std::vector<Reproduction>& reproductions,
                         const std::optional<KernelReproduction>& kernels,
                         const std::vector<ThesisReproduction>& theses, std::ostream& out);

}  // namespace convoy::cli
