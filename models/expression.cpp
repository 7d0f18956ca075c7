// SPDX-License-Identifier: MIT
#include "models/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "models/formula.h"
#include "sim/base/names.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {
namespace {

constexpr std::size_t max_length = 200;  // bounds the depth of parentheses too

/// One expression.
class Evaluator {
 public:
  Evaluator(const YamlNode& node, const Scope& scope) : node_(node), scope_(scope), text_(node.scalar) {
    if (text_.size() > max_length) fail(fmt::format("is longer than {} characters", max_length));
  }

  YamlNode value() const {
    YamlNode result = text_.starts_with("$(") ? computed() : referred();
    result.pos = node_.pos;
    result.key_pos = node_.key_pos;
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(node_.pos, fmt::format("expression '{}' {}", text_.substr(0, max_length), message));
  }
  void check_end(std::size_t end) const {
    if (end != text_.size()) fail(fmt::format("has '{}' left over", text_.substr(end)));
  }

  YamlNode computed() const {
    const Formula::Fail failed = [this](const std::string& message) { fail(message); };
    const Formula formula(text_, 2, failed);
    if (formula.end() == text_.size() || text_[formula.end()] != ')') fail("lacks a ')'");
    check_end(formula.end() + 1);
    std::vector<std::int64_t> values;
    for (const std::string& name : formula.names())
      values.push_back(
          read_integer(named(name), fmt::format("expression '{}'", text_), -YamlMap::max_integer));
    YamlNode result;
    result.kind = YamlNode::Kind::scalar;
    result.scalar = fmt::format("{}", formula.value(values, failed));
    return result;
  }

  YamlNode referred() const {
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const auto digits = [](char c) { return std::isdigit(static_cast<unsigned char>(c)); };
    const auto* name_end = std::find_if_not(text_.begin() + 1, text_.end(), is_part);
    const auto* end = name_end;
    if (end != text_.end() && *end == '.' && end + 1 != text_.end() && digits(end[1]))
      end = std::find_if_not(end + 1, text_.end(), digits);
    if (name_end == text_.begin() + 1) fail("is none: write $name, $name.0 or $(2*name + 1)");
    check_end(static_cast<std::size_t>(end - text_.begin()));
    return named(std::string(text_.begin() + 1, end));
  }

  /// @param reference "name" or "name.3"
  YamlNode named(const std::string& reference) const {
    const std::string name = reference.substr(0, reference.find('.'));
    const auto it = scope_.find(name);
    if (it == scope_.end()) {
      std::vector<std::string> known;
      for (const auto& [key, value] : scope_) known.push_back(key);
      fail(fmt::format("uses '{}', which nothing defines here{}; known: {}", name, suggestion(name, known),
                       known.empty() ? "nothing" : list_of(known)));
    }
    if (name == reference) return it->second;
    std::size_t index = std::numeric_limits<std::size_t>::max();
    std::from_chars(reference.data() + name.size() + 1, reference.data() + reference.size(), index);
    if (it->second.kind != YamlNode::Kind::sequence || index >= it->second.items.size())
      fail(fmt::format("asks '{}' for its item {}, but it is {}", name, reference.substr(name.size() + 1),
                       describe(it->second)));
    return it->second.items[index];
  }

  const YamlNode& node_;
  const Scope& scope_;
  std::string_view text_;
};

}  // namespace

YamlNode substitute(const YamlNode& node, const Scope& scope) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted && node.scalar.starts_with('$'))
    return Evaluator(node, scope).value();
  YamlNode result = node;
  for (YamlNode& item : result.items) item = substitute(item, scope);
  for (auto& [key, value] : result.entries) value = substitute(value, scope);
  return result;
}

}  // namespace convoy::models
