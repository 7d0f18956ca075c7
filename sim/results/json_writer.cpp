// SPDX-License-Identifier: MIT
#include "sim/results/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ostream>
#include <stdexcept>

#include "sim/base/clean_text.h"
#include "sim/base/quantity.h"

namespace convoy::inline results {
namespace {

constexpr std::size_t buffer_bytes = 1u << 16;

}  // namespace

namespace {

void append_shortest(double number, std::string& to) {
  // Readers of JSON take digits without an exponent for a whole number, for which they have 64 bits.
  constexpr double most_whole = 9'223'372'036'854'775'808.0;
  std::array<char, 32> text;
  char* const last = text.data() + text.size();
  const auto [end, error] = std::abs(number) < most_whole
                                ? std::to_chars(text.data(), last, number)
                                : std::to_chars(text.data(), last, number, std::chars_format::scientific);
  to.append(text.data(), end);
}

}  // namespace

std::string shortest(double number) {
  std::string text;
  append_shortest(number, text);
  return text;
}

std::string yaml_spelling(double number) {
  const std::string text = shortest(number);
  return number_spelling(text).value_or(text);
}

JsonWriter::JsonWriter(std::ostream& out, Style style, int indent)
    : out_(out), style_(style), indent_(indent) {
  buffer_.reserve(buffer_bytes + 4096);
}

JsonWriter::~JsonWriter() { flush(); }

void JsonWriter::flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

void JsonWriter::separate() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.empty) buffer_ += level.style == Style::compact ? ", " : ",";
  if (level.style == Style::lines) {
    buffer_ += '\n';
    buffer_.append(2 * (levels_.size() + static_cast<std::size_t>(indent_)), ' ');
  }
  level.empty = false;
}

void JsonWriter::before_value() {
  if (!after_key_) separate();
  after_key_ = false;
  if (buffer_.size() >= buffer_bytes) flush();
}

void JsonWriter::open(char bracket, Style style) {
  before_value();
  buffer_ += bracket;
  const bool compact = style == Style::compact || style_ != Style::lines ||
                       (!levels_.empty() && levels_.back().style == Style::compact);
  levels_.push_back({compact ? Style::compact : Style::lines});
}

void JsonWriter::close(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.style == Style::lines && !level.empty) {
    buffer_ += '\n';
    buffer_.append(2 * (levels_.size() + static_cast<std::size_t>(indent_)), ' ');
  }
  buffer_ += bracket;
}

void JsonWriter::key(std::string_view name) {
  separate();
  string(name);
  buffer_ += ": ";
  after_key_ = true;
}

void JsonWriter::string(std::string_view text) {
  buffer_ += '"';
  while (!text.empty()) {
    const auto special = std::find_if(text.begin(), text.end(), [in_page = style_ == Style::in_page](char c) {
      return static_cast<unsigned char>(c) - 0x20u >= 0x7fu - 0x20u || c == '"' || c == '\\' ||
             (in_page && (c == '<' || c == '>' || c == '&'));
    });
    const auto plain = static_cast<std::size_t>(special - text.begin());
    buffer_.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (!text.empty()) text.remove_prefix(special_character(text));
  }
  buffer_ += '"';
}

/// Writes the character at the start of `text`, which is not allowed as it is or is not ASCII;
/// returns its length.
std::size_t JsonWriter::special_character(std::string_view text) {
  const std::size_t length = utf8_length(text);
  const auto c = static_cast<unsigned char>(text.front());
  if (length == 0) {
    buffer_ += "\\ufffd";  // not UTF-8 (a name from a file): becomes the replacement character
  } else if (c == '"' || c == '\\') {
    buffer_ += '\\';
    buffer_ += text.front();
  } else if (length == 1) {
    buffer_ += fmt::format("\\u{:04x}", c);
  } else {
    buffer_ += text.substr(0, length);
  }
  return std::max<std::size_t>(length, 1);
}

void JsonWriter::value(std::string_view text) {
  before_value();
  string(text);
}

void JsonWriter::value(bool truth) {
  before_value();
  buffer_ += truth ? "true" : "false";
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) throw std::logic_error(fmt::format("a result is not a number: {}", number));
  before_value();
  append_shortest(number, buffer_);
}

void JsonWriter::value(std::int64_t number) {
  before_value();
  buffer_ += fmt::format_int(number).c_str();
}

void JsonWriter::null() {
  before_value();
  buffer_ += "null";
}

void JsonWriter::raw(std::string_view json) {
  before_value();
  buffer_ += json;
}

void JsonWriter::value(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      null();
      return;
    case YamlNode::Kind::sequence:
      begin_array(Style::compact);
      for (const YamlNode& item : node.items) value(item);
      end_array();
      return;
    case YamlNode::Kind::mapping:
      begin_object(Style::compact);
      for (const auto& [name, content] : node.entries) field(name, content);
      end_object();
      return;
    case YamlNode::Kind::scalar:
      break;
  }
  if (!node.quoted) {
    if (node.scalar == "true" || node.scalar == "false") return value(node.scalar == "true");
    if (const std::optional<double> number = parse_number(node.scalar)) return value(*number);
  }
  value(std::string_view(node.scalar));
}

}  // namespace convoy::results
