// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::inline base {

/// A mapping whose `kind` decides which other keys it has. Its keys are `kind`, whose meaning has one line per
/// kind, and those of all kinds; a key that only some kinds have says which.
KeySection section_of_kinds(std::string name, std::string summary, std::vector<KeySection> kinds);

/// The same for the rows of a registry, which have `kind`, `summary` and `keys`.
template <class Registry>
KeySection section_of_registry(std::string name, std::string summary, const Registry& registry) {
  std::vector<KeySection> kinds;
  for (const auto& entry : registry)
    kinds.push_back({std::string(entry.kind), std::string(entry.summary), entry.keys});
  return section_of_kinds(std::move(name), std::move(summary), std::move(kinds));
}

}  // namespace convoy::base
