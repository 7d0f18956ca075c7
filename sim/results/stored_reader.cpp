// SPDX-License-Identifier: MIT
#include "sim/results/stored_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sim/results/field_reader.h"
#include "sim/results/json_writer.h"

namespace convoy {
namespace {

constexpr int deepest_value = 100;

}  // namespace

void StoredReader::fail(std::string_view expected) const {
  if (at_ >= text_.size()) throw JsonError("ends too early");
  throw JsonError(fmt::format("column {}: expected {}", at_ + 1, expected));
}

bool StoredReader::take(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

void StoredReader::open(char bracket) {
  if (!take({&bracket, 1})) fail({&bracket, 1});
  first_ = true;
}

void StoredReader::close(char bracket) {
  if (!take({&bracket, 1})) fail({&bracket, 1});
  first_ = false;  // of the object or list around it, this one was an item
}

void StoredReader::separate() {
  if (!first_ && !take(", ")) fail("', '");
  first_ = false;
}

/// Takes `"name": `, and what separates it from the name before it; or nothing, where another one stands.
bool StoredReader::take_name(std::string_view name) {
  const std::size_t before = at_;
  if ((first_ || take(", ")) && take("\"") && take(name) && take("\": ")) {
    first_ = false;
    return true;
  }
  at_ = before;
  return false;
}

void StoredReader::require(std::string_view name) {
  if (take_name(name)) return;
  if (at_ >= text_.size()) throw JsonError("ends too early");
  throw JsonError(fmt::format("column {}: '{}' is missing", at_ + 1, name));
}

template <class Number>
Number StoredReader::number(std::string_view expected) {
  Number value{};
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc{}) fail(expected);
  at_ += static_cast<std::size_t>(end - begin);
  return value;
}

double StoredReader::signed_number() {
  const double value = number<double>("a number");
  if (!(std::abs(value) <= largest_result)) throw JsonError("a number that large is no result");
  return value;
}

void StoredReader::read(double& value) {
  value = signed_number();
  if (value < 0) throw JsonError("expected a number that is not below zero");
}

void StoredReader::read(std::int64_t& value) {
  value = number<std::int64_t>("a whole number");
  if (value < 0) throw JsonError("expected a whole number that is not below zero");
}

void StoredReader::read(std::uint64_t& value) {
  value = static_cast<std::uint64_t>(number<std::int64_t>("a whole number"));  // the signed number of the same bits
}

void StoredReader::read(bool& value) {
  value = take("true");
  if (!value && !take("false")) fail("true or false");
}

/// The four hexadecimal digits after "\u".
unsigned StoredReader::escaped_unit() {
  unsigned unit = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
  if (error != std::errc{} || end != digits.data() + 4) fail("four hexadecimal digits");
  at_ += 4;
  return unit;
}

/// JsonWriter escapes quotes, backslashes, control characters, and what was no UTF-8, as U+FFFD.
void StoredReader::read(std::string& value) {
  if (!take("\"")) fail("text");
  value.clear();
  for (;;) {
    const std::size_t end = text_.find_first_of("\"\\", at_);
    if (end == std::string_view::npos) throw JsonError("ends too early");
    value.append(text_.substr(at_, end - at_));
    at_ = end;
    if (take("\"")) return;
    if (take("\\u")) {
      const unsigned unit = escaped_unit();
      if (unit < 0x80)
        value += static_cast<char>(unit);
      else if (unit == 0xfffd)
        value += "\xef\xbf\xbd";
      else
        fail("an escape that is written here");
    } else if (take("\\\"") || take("\\\\")) {
      value += text_[at_ - 1];
    } else {
      fail("an escape that is written here");
    }
  }
}

/// As yaml_of_json makes it of a document's value.
void StoredReader::read(YamlNode& node, int depth) {
  if (depth > deepest_value) throw JsonError(fmt::format("nested deeper than {} levels", deepest_value));
  if (take("null")) return;
  if (at_end_of('[')) {
    node.kind = YamlNode::Kind::sequence;
    return items([&] { read(node.items.emplace_back(), depth + 1); });
  }
  if (at_end_of('{')) {
    node.kind = YamlNode::Kind::mapping;
    open('{');
    while (!at_end_of('}')) {
      separate();
      auto& [name, value] = node.entries.emplace_back();
      read(name);
      if (!take(": ")) fail("': '");
      read(value, depth + 1);
    }
    return close('}');
  }
  node.kind = YamlNode::Kind::scalar;
  node.quoted = at_end_of('"');
  if (node.quoted)
    read(node.scalar);
  else if (take("true"))
    node.scalar = "true";
  else if (take("false"))
    node.scalar = "false";
  else
    node.scalar = shortest(signed_number());
}

void StoredReader::gain(std::string_view name, double& number) {
  require(name);
  number = signed_number();
}

void StoredReader::gain(std::string_view name, std::optional<double>& number) {
  require(name);
  if (!take("null")) number = signed_number();
}

void StoredReader::nullable(std::string_view name, std::optional<double>& number) {
  require(name);
  if (!take("null")) read(number.emplace());
}

void StoredReader::range(std::string_view name, std::array<double, 2>& bounds) {
  require(name);
  open('[');
  for (double& bound : bounds) {
    separate();
    read(bound);
  }
  close(']');
}

void StoredReader::texts(std::string_view name, std::vector<std::string>& texts) {
  require(name);
  items([&] { read(texts.emplace_back()); });
}

void StoredReader::map(std::string_view name, std::vector<std::pair<std::string, std::string>>& pairs) {
  require(name);
  open('{');
  while (!at_end_of('}')) {
    separate();
    auto& [key, text] = pairs.emplace_back();
    read(key);
    if (!take(": ")) fail("': '");
    read(text);
  }
  close('}');
}

void StoredReader::yaml(std::string_view name, YamlNode& node) {
  require(name);
  node = {};
  read(node, 0);
}

void StoredReader::memory(std::string_view name, std::array<double, memory_class_count>& bytes) {
  require(name);
  open('{');
  for (std::size_t c = 0; c < memory_class_count; ++c) field(memory_class_names[c], bytes[c]);
  close('}');
}

void StoredReader::null(std::string_view name) {
  require(name);
  if (!take("null")) fail("null");
}

void StoredReader::finish() const {
  if (at_ != text_.size()) throw JsonError(fmt::format("column {}: expected the end", at_ + 1));
}

}  // namespace convoy
