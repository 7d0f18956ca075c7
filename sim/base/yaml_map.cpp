// SPDX-License-Identifier: MIT
#include "sim/base/yaml_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/names.h"
#include "sim/base/unexpected_value.h"

namespace convoy::inline base {
namespace {

[[noreturn]] void fail_at(const SourcePos& pos, const std::string& path, const std::string& message) {
  throw InputError(pos, path.empty() ? message : fmt::format("{}: {}", path, message));
}

void require_scalar(const YamlNode& node, const std::string& path, std::string_view expected) {
  if (node.kind != YamlNode::Kind::scalar) fail_unexpected(node, path, expected);
}

std::string range_text(double min, double max) {
  if (max == static_cast<double>(YamlMap::max_integer)) return fmt::format("between {} and 2^53", min);
  if (max >= std::numeric_limits<double>::max()) return fmt::format("at least {}", min);
  return fmt::format("between {} and {}", min, max);
}

}  // namespace

std::string read_text(const YamlNode& node, const std::string& path) {
  require_scalar(node, path, "a text");
  return node.scalar;
}

double read_number(const YamlNode& node, const std::string& path, double min, double max) {
  require_scalar(node, path, "a number");
  const std::optional<double> value = node.quoted ? std::nullopt : parse_number(node.scalar);
  if (!value) fail_unexpected(node, path, "a number");
  if (*value < min || *value > max)
    fail_at(node.pos, path,
            fmt::format("{} is out of range: {} is allowed", node.scalar, range_text(min, max)));
  return *value;
}

std::int64_t read_integer(const YamlNode& node, const std::string& path, std::int64_t min, std::int64_t max) {
  require_scalar(node, path, "a whole number");
  const bool octal_look = node.scalar.size() > 1 && node.scalar[0] == '0' &&
                          std::isdigit(static_cast<unsigned char>(node.scalar[1]));
  const std::optional<double> value = node.quoted || octal_look ? std::nullopt : parse_number(node.scalar);
  if (!value || *value != std::floor(*value)) fail_unexpected(node, path, "a whole number");
  if (*value < static_cast<double>(min) || *value > static_cast<double>(max))
    fail_at(node.pos, path,
            fmt::format("{} is out of range: {} is allowed", node.scalar,
                        range_text(static_cast<double>(min), static_cast<double>(max))));
  return static_cast<std::int64_t>(*value);
}

double read_quantity(const YamlNode& node, const std::string& path, Dimension dimension, bool positive) {
  require_scalar(node, path, quantity_help(dimension));
  std::string why;
  const std::optional<double> value = parse_quantity(node.scalar, dimension, why);
  if (!value) fail_at(node.pos, path, why);
  if (positive && *value == 0)
    fail_at(node.pos, path, fmt::format("'{}' must be more than zero", node.scalar));
  return *value;
}

YamlMap::YamlMap(const YamlNode& node, std::string path) : node_(&node), path_(std::move(path)) {
  if (node.kind != YamlNode::Kind::mapping) fail_unexpected(node, path_, "a mapping (key: value)");
}

bool YamlMap::has(std::string_view key) const {
  const YamlNode* value = node_->find(key);
  return value && value->kind != YamlNode::Kind::null;
}

const YamlNode* YamlMap::find(std::string_view key) {
  known_.emplace(key);
  return has(key) ? node_->find(key) : nullptr;
}

const YamlNode& YamlMap::node(std::string_view key, const std::vector<std::string>& allowed) {
  known_.emplace(key);
  if (const YamlNode* value = node_->find(key)) return *value;
  std::vector<std::string> given;
  for (const auto& [name, value] : node_->entries)
    if (!known_.contains(name)) given.push_back(name);
  fail_at(node_->pos, path_,
          fmt::format("key '{}' is missing{}{}{}", key, suggestion(key, given),
                      allowed.empty() ? "" : "; allowed: ", list_of(allowed)));
}

YamlMap YamlMap::map(std::string_view key) { return YamlMap(node(key), path_of(key)); }

std::vector<YamlMap> YamlMap::maps(std::string_view key) {
  const YamlNode& list = node(key);
  if (list.kind != YamlNode::Kind::sequence)
    fail(key,
         fmt::format("expected a list of mappings, found {}{}", describe(list),
                     list.kind == YamlNode::Kind::mapping ? "; each of them begins with a dash: '- '" : ""));
  std::vector<YamlMap> result;
  result.reserve(list.items.size());
  for (std::size_t i = 0; i < list.items.size(); ++i)
    result.emplace_back(list.items[i], fmt::format("{}[{}]", path_of(key), i));
  return result;
}

std::string YamlMap::text(std::string_view key) { return read_text(node(key), path_of(key)); }

std::string YamlMap::text_or(std::string_view key, std::string fallback) {
  const YamlNode* value = find(key);
  return value ? read_text(*value, path_of(key)) : std::move(fallback);
}

std::size_t YamlMap::choice(std::string_view key, const std::vector<std::string>& allowed,
                            std::string_view or_else) {
  node(key, allowed);
  const std::string value = text(key);
  const auto it = std::find(allowed.begin(), allowed.end(), meant(value, allowed));
  if (it == allowed.end())
    fail(key, fmt::format("unknown value '{}'{}; allowed: {}{}{}", value, suggestion(value, allowed),
                          list_of(allowed), or_else.empty() ? "" : ", ", or_else));
  return static_cast<std::size_t>(it - allowed.begin());
}

std::size_t YamlMap::choice_or(std::string_view key, const std::vector<std::string>& allowed,
                               std::size_t fallback) {
  return find(key) ? choice(key, allowed) : fallback;
}

bool YamlMap::flag_or(std::string_view key, bool fallback) {
  const YamlNode* value = find(key);
  if (!value) return fallback;
  if (value->kind == YamlNode::Kind::scalar && !value->quoted) {
    if (value->scalar == "true") return true;
    if (value->scalar == "false") return false;
  }
  fail_unexpected(*value, path_of(key), "true or false");
}

std::int64_t YamlMap::integer(std::string_view key, std::int64_t min, std::int64_t max) {
  return read_integer(node(key), path_of(key), min, max);
}

std::int64_t YamlMap::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                 std::int64_t max) {
  return find(key) ? integer(key, min, max) : fallback;
}

double YamlMap::number(std::string_view key, double min, double max) {
  return read_number(node(key), path_of(key), min, max);
}

double YamlMap::number_or(std::string_view key, double fallback, double min, double max) {
  return find(key) ? number(key, min, max) : fallback;
}

double YamlMap::quantity(std::string_view key, Dimension dimension, bool positive) {
  return read_quantity(node(key), path_of(key), dimension, positive);
}

double YamlMap::quantity_or(std::string_view key, Dimension dimension, double fallback, bool positive) {
  return find(key) ? quantity(key, dimension, positive) : fallback;
}

void YamlMap::finish() const {
  for (const auto& [name, value] : node_->entries) {
    if (known_.contains(name)) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    if (const std::size_t colon = name.find(':'); known_.contains(name.substr(0, colon)))
      fail_at(value.key_pos, path_of(name.substr(0, colon)), "a space is missing after the colon");
    fail_at(value.key_pos, path_of(name),
            fmt::format("unknown key{}; known here: {}", suggestion(name, known), list_of(known)));
  }
}

std::vector<std::string> YamlMap::keys() {
  std::vector<std::string> result;
  for (const auto& [name, value] : node_->entries) {
    known_.insert(name);
    result.push_back(name);
  }
  return result;
}

std::string YamlMap::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const SourcePos& YamlMap::pos(std::string_view key) const {
  const YamlNode* value = node_->find(key);
  return value ? value->pos : node_->pos;
}

void YamlMap::fail(std::string_view key, const std::string& message) const {
  fail_at(pos(key), path_of(key), message);
}

void YamlMap::fail(const std::string& message) const { fail_at(node_->pos, path_, message); }

}  // namespace convoy::base
