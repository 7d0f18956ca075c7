// SPDX-License-Identifier: MIT
#include "sim/base/key_kinds.h"

#include <fmt/format.h>

#include <utility>

namespace convoy::inline base {

std::vector<KeyText> keys_of_kinds(const std::vector<KindKeys>& kinds) {
  std::vector<std::pair<std::string, std::vector<KeyText>>> variants;
  std::vector<std::string> names;
  std::string summaries;
  for (const KindKeys& each : kinds) {
    variants.emplace_back(each.kind, each.keys);
    names.push_back(each.kind);
    summaries += fmt::format("{}{}: {}", summaries.empty() ? "" : ";\n", each.kind, each.summary);
  }
  std::vector<KeyText> keys = texts_of_variants(variants);
  keys.insert(keys.begin(), {"kind", keys_detail::choices_text(names, 0), summaries + "; required", names});
  return keys;
}

}  // namespace convoy::base
