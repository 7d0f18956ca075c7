// SPDX-License-Identifier: MIT
#include "sim/base/key_kinds.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::inline base {

KeySection section_of_kinds(std::string name, std::string summary, std::vector<KeySection> kinds) {
  std::vector<std::pair<std::string, std::vector<KeyText>>> variants;
  std::vector<std::string> names;
  std::string summaries;
  for (const KeySection& each : kinds) {
    variants.emplace_back(each.name, each.keys);
    names.push_back(each.name);
    summaries += fmt::format("{}{}: {}", summaries.empty() ? "" : ";\n", each.name, each.summary);
  }
  std::vector<KeyText> keys = texts_of_variants(variants);
  KeyText kind = key_text("kind", "", forms::name(names), summaries + "; required");
  kind.required = true;
  keys.insert(keys.begin(), std::move(kind));
  return {std::move(name), std::move(summary), std::move(keys), "kind", std::move(kinds)};
}

}  // namespace convoy::base
