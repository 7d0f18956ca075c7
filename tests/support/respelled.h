// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/yaml_node.h"

namespace convoy::respelled {

/// Writes a tree of YAML in other words that mean the same: numbers (16, 16.0, 1.6e1, +16), texts with and
/// without quotes, mappings in flow and in block style and with their keys in another order. What YAML means
/// is kept: quoted numbers, truths and nulls are texts and stay so.
class Speller {
 public:
  /// @param between a random number of the range
  /// @param shuffles whether the order of a mapping's keys means nothing, by its dotted path
  Speller(std::function<int(int low, int high)> between,
          std::function<bool(const std::string& path)> shuffles)
      : between_(std::move(between)), shuffles_(std::move(shuffles)) {}

  std::string document(const YamlNode& root) { return block(root, "", 0); }

 private:
  bool coin() { return between_(0, 1) == 1; }

  static bool is_special(const std::string& text) {
    return parse_number(text) || text.empty() || text == "~" || text == "null" || text == "true" ||
           text == "false" || text.front() == '$';
  }

  std::string number(const std::string& spelled) {
    const bool negative = spelled.front() == '-';
    std::string digits = negative ? spelled.substr(1) : spelled;
    const std::string sign = negative ? "-" : coin() ? "+" : "";
    if (digits.find('e') != std::string::npos) return sign + digits;
    const bool whole = digits.find('.') == std::string::npos;
    switch (between_(0, 4)) {
      case 0:
        return sign + digits + (whole ? ".0" : "0");
      case 1:
        return sign + digits + "e0";
      case 2:  // 16 as 1.6e1
        if (!whole || digits == "0") return sign + digits;
        return fmt::format("{}{}{}{}E{}", sign, digits.substr(0, 1), digits.size() > 1 ? "." : "",
                           digits.substr(1), digits.size() - 1);
      case 3:
        return sign + (whole && digits != "0" ? digits + "0e-1" : digits);
      default:
        return spelled;
    }
  }

  std::string quoted(const std::string& text) {
    const bool odd = std::any_of(text.begin(), text.end(), [](char c) { return c < ' ' || c == '\\'; });
    std::string result;
    if (!odd && coin()) {
      for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
      return "'" + result + "'";
    }
    for (const char c : text) {
      if (c == '\n')
        result += "\\n";
      else if (c == '"' || c == '\\')
        result += std::string("\\") + c;
      else
        result += c;
    }
    return "\"" + result + "\"";
  }

  std::string scalar(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::null) return coin() ? "null" : "~";
    if (node.quoted && is_special(node.scalar)) return quoted(node.scalar);
    if (!node.quoted && number_spelling(node.scalar)) return number(node.scalar);
    if (!node.quoted && is_special(node.scalar)) return node.scalar;
    const bool plain = std::isalpha(static_cast<unsigned char>(node.scalar.front())) != 0 &&
                       std::all_of(node.scalar.begin(), node.scalar.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                                c == '.' || c == '/';
                       });
    return plain && coin() ? node.scalar : quoted(node.scalar);
  }

  std::string key(const std::string& name) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.scalar = name;
    return scalar(node);
  }

  std::vector<std::pair<std::string, YamlNode>> shuffled(const YamlNode& node, const std::string& path) {
    std::vector<std::pair<std::string, YamlNode>> entries = node.entries;
    if (shuffles_(path))
      for (std::size_t i = entries.size(); i > 1; --i)
        std::swap(entries[i - 1], entries[static_cast<std::size_t>(between_(0, static_cast<int>(i) - 1))]);
    return entries;
  }

  static std::string inside(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
  }

  std::string flow(const YamlNode& node, const std::string& path) {
    std::string text;
    if (node.kind == YamlNode::Kind::sequence) {
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + flow(item, path);
      return "[" + text + "]";
    }
    if (node.kind != YamlNode::Kind::mapping) return scalar(node);
    for (const auto& [name, value] : shuffled(node, path))
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key(name), flow(value, inside(path, name)));
    return "{" + text + "}";
  }

  /// Ends with a line end.
  std::string block(const YamlNode& node, const std::string& path, std::size_t indent) {
    const std::string margin(indent, ' ');
    const bool list = node.kind == YamlNode::Kind::sequence, mapping = node.kind == YamlNode::Kind::mapping;
    const bool has_any = !(list ? node.items.empty() : node.entries.empty());
    if ((!list && !mapping) || !has_any || (indent > 0 && between_(0, 2) == 0))
      return margin + flow(node, path) + "\n";
    std::string text;
    if (list)
      for (const YamlNode& item : node.items) text += margin + "-\n" + block(item, path, indent + 2);
    for (const auto& [name, value] : mapping ? shuffled(node, path) : node.entries)
      text += fmt::format("{}{}:\n{}", margin, key(name), block(value, inside(path, name), indent + 2));
    return text;
  }

  std::function<int(int, int)> between_;
  std::function<bool(const std::string&)> shuffles_;
};

/// A mapping of an experiment whose keys are in an order that means something: a sweep's first key changes
/// slowest in its results.
inline bool has_no_order(const std::string& path) { return path != "sweep"; }

}  // namespace convoy::respelled
