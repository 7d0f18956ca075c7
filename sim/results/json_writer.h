// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/yaml_node.h"

namespace convoy::inline results {

/// Writes JSON incrementally, so that a document is never in memory as a whole. Numbers have the shortest
/// form that reads back to the same double; the caller opens and closes objects and lists in order.
class JsonWriter {
 public:
  enum class Style {
    lines,
    compact,  ///< no line breaks within (still one space after ':' and ',')
    in_page   ///< of a whole document: the same, without characters that mean something in HTML or XML
  };

  /// @param indent number of levels by which the document is indented, for a part of a larger one
  explicit JsonWriter(std::ostream& out, Style style = Style::lines, int indent = 0);
  ~JsonWriter();  ///< flushes
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object(Style style = Style::lines) { open('{', style); }
  void end_object() { close('}'); }
  void begin_array(Style style = Style::lines) { open('[', style); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth);
  void value(double number);  ///< @throws std::logic_error if it is not finite: JSON has no such number
  void value(std::int64_t number);
  void null();
  /// Plain numbers, true, false and null as such; other scalars as text; lists and mappings on one line.
  void value(const YamlNode& node);
  /// Text that is already JSON.
  void raw(std::string_view json);

  template <class T>
  void field(std::string_view name, const T& content) {
    key(name);
    value(content);
  }

  void flush();

 private:
  struct Level {
    Style style;
    bool empty = true;
  };
  void open(char bracket, Style style);
  void close(char bracket);
  void before_value();
  void separate();
  void string(std::string_view text);
  std::size_t special_character(std::string_view text);

  std::ostream& out_;
  std::string buffer_;
  std::vector<Level> levels_;
  Style style_;
  int indent_;
  bool after_key_ = false;
};

/// The shortest text that reads back to the same double: "0.1", "1e+22". From 2^63 on with an exponent.
std::string shortest(double number);
/// The same as readers of YAML spell it (number_spelling): "10000000000000000000000".
std::string yaml_spelling(double number);

}  // namespace convoy::results
