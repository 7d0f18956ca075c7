// SPDX-License-Identifier: MIT
#include "models/expression.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/names.h"
#include "sim/base/yaml_map.h"

namespace convoy::inline models {
namespace {

constexpr std::size_t max_length = 200;  // bounds the depth of parentheses too

/// Recursive descent over one expression.
class Evaluator {
 public:
  Evaluator(const YamlNode& node, const Scope& scope) : node_(node), scope_(scope), text_(node.scalar) {
    if (text_.size() > max_length) fail(fmt::format("is longer than {} characters", max_length));
    ++at_;  // the '$'
  }

  YamlNode value() {
    YamlNode result;
    if (peek() == '(') {
      result.kind = YamlNode::Kind::scalar;
      result.scalar = fmt::format("{}", primary());
    } else {
      result = named();
    }
    if (at_ != text_.size()) fail(fmt::format("has '{}' left over", text_.substr(at_)));
    result.pos = node_.pos;
    result.key_pos = node_.key_pos;
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(node_.pos, fmt::format("expression '{}' {}", text_.substr(0, max_length), message));
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  /// Operands are at most 2^53 in size, so only products can overflow.
  std::int64_t checked(std::int64_t result) const {
    if (result > YamlMap::max_integer || result < -YamlMap::max_integer) fail("is too large");
    return result;
  }

  std::int64_t sum() {
    std::int64_t left = product();
    for (;;) {
      if (take('+'))
        left = checked(left + product());
      else if (take('-'))
        left = checked(left - product());
      else
        return left;
    }
  }

  std::int64_t product() {
    std::int64_t left = primary();
    for (;;) {
      if (take('*')) {
        const std::int64_t right = primary();
        std::int64_t result = 0;
        if (__builtin_mul_overflow(left, right, &result)) fail("is too large");
        left = checked(result);
      } else if (take('/')) {
        const std::int64_t right = primary();
        if (right == 0) fail("divides by zero");
        if (left % right != 0) fail(fmt::format("divides {} by {}, which leaves a remainder", left, right));
        left /= right;
      } else {
        return left;
      }
    }
  }

  std::int64_t primary() {
    if (take('(')) {
      const std::int64_t inside = sum();
      if (!take(')')) fail("lacks a ')'");
      return inside;
    }
    if (std::isdigit(static_cast<unsigned char>(peek()))) return digits();
    const YamlNode value = named();
    return read_integer(value, fmt::format("expression '{}'", text_), -YamlMap::max_integer);
  }

  std::int64_t digits() {
    peek();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc{}) fail("needs a whole number here");
    at_ = static_cast<std::size_t>(end - text_.data());
    return checked(number);
  }

  YamlNode named() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (name.empty()) fail("is none: write $name, $name.0 or $(2*name + 1)");
    const auto it = scope_.find(name);
    if (it == scope_.end()) {
      std::vector<std::string> known;
      for (const auto& [key, value] : scope_) known.push_back(key);
      fail(fmt::format("uses '{}', which nothing defines here{}; known: {}", name, suggestion(name, known),
                       known.empty() ? "nothing" : list_of(known)));
    }
    if (at_ == text_.size() || text_[at_] != '.') return it->second;
    ++at_;
    const std::int64_t index = digits();
    if (it->second.kind != YamlNode::Kind::sequence ||
        index >= static_cast<std::int64_t>(it->second.items.size()))
      fail(fmt::format("asks '{}' for its item {}, but it is {}", name, index, describe(it->second)));
    return it->second.items[static_cast<std::size_t>(index)];
  }

  const YamlNode& node_;
  const Scope& scope_;
  std::string_view text_;
  std::size_t at_ = 0;
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
