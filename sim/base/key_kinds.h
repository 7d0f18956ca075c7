// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/base/keys.h"

namespace convoy::inline base {

/// A mapping whose `kind` decides which other keys it has; this is one of its kinds.
struct KindKeys {
  std::string kind, summary;
  std::vector<KeyText> keys;
};
/// `kind`, whose meaning has one line per kind, and the keys of all kinds; a key that only some kinds have
/// says which.
std::vector<KeyText> keys_of_kinds(const std::vector<KindKeys>& kinds);

/// The same for the rows of a registry, which have `kind`, `summary` and `keys`.
template <class Registry>
std::vector<KeyText> keys_of_registry(const Registry& registry) {
  std::vector<KindKeys> kinds;
  for (const auto& entry : registry)
    kinds.push_back({std::string(entry.kind), std::string(entry.summary), entry.keys});
  return keys_of_kinds(kinds);
}

}  // namespace convoy::base
