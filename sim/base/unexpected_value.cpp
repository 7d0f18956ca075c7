// SPDX-License-Identifier: MIT
#include "sim/base/unexpected_value.h"

#include <fmt/format.h>

namespace convoy::inline base {

ListGiven::ListGiven(SourcePos list_pos, std::string text)
    : InputError(list_pos, text), pos_(std::move(list_pos)), message_(std::move(text)) {}

void fail_unexpected(const YamlNode& node, const std::string& path, std::string_view expected) {
  const std::string message =
      fmt::format("{}{}expected {}, found {}", path, path.empty() ? "" : ": ", expected, describe(node));
  if (node.kind == YamlNode::Kind::sequence) throw ListGiven(node.pos, message);
  throw InputError(node.pos, message);
}

}  // namespace convoy::base
