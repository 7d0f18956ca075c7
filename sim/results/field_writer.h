// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/quantity.h"
#include "sim/results/field_at.h"
#include "sim/results/json_writer.h"

namespace convoy::inline results {

/// The items of a column of a table. Equal numbers that follow one another are written once, with how many they are: `[0.5, 3]`.
class ColumnWriter {
 public:
  explicit ColumnWriter(JsonWriter& json) : json_(json) { json_.begin_array(JsonWriter::Style::compact); }
  ~ColumnWriter() {
    finish_run();
    json_.end_array();
  }
  ColumnWriter(const ColumnWriter&) = delete;
  ColumnWriter& operator=(const ColumnWriter&) = delete;

  void add(const std::string& text) { json_.value(std::string_view(text)); }
  void add(double number) { add_number(Number{.fraction = number, .whole = 0, .is_whole = false}); }
  void add(std::int64_t number) { add_number(Number{.fraction = 0, .whole = number, .is_whole = true}); }

 private:
  struct Number {
    double fraction;
    std::int64_t whole;
    bool is_whole;
    bool operator==(const Number& other) const {
      return is_whole == other.is_whole && whole == other.whole &&
             std::bit_cast<std::uint64_t>(fraction) == std::bit_cast<std::uint64_t>(other.fraction);
    }
  };
  void add_number(const Number& number) {
    if (times_ > 0 && !(number == last_)) finish_run();
    last_ = number;
    ++times_;
  }
  void finish_run() {
    if (times_ == 0) return;
    if (times_ > 1) json_.begin_array(JsonWriter::Style::compact);
    last_.is_whole ? json_.value(last_.whole) : json_.value(last_.fraction);
    if (times_ > 1) {
      json_.value(times_);
      json_.end_array();
    }
    times_ = 0;
  }

  JsonWriter& json_;
  Number last_{};
  std::int64_t times_ = 0;  ///< that the last number has been added, and is to be written
};

/// The writing archive of result_fields.h.
class FieldWriter {
  using Style = JsonWriter::Style;

 public:
  enum class Tables {
    by_row,
    by_column,
  };  ///< objects, as documents have them; or shorter, by name the list of a column, as StoredReader reads them
  explicit FieldWriter(JsonWriter& json, Tables tables = Tables::by_row) : json_(json), tables_(tables) {}

  template <class T>
  void field(std::string_view name, const T& value) {
    json_.field(name, value);
  }
  void field(std::string_view name, std::uint64_t value) {
    json_.field(name, static_cast<std::int64_t>(value));
  }

  void gain(std::string_view name, double number) { json_.field(name, number); }
  void gain(std::string_view name, const std::optional<double>& number) { nullable(name, number); }
  void nullable(std::string_view name, const std::optional<double>& number) {
    number ? json_.field(name, *number) : null(name);
  }
  void truth(std::string_view name, bool value) {
    if (value) json_.field(name, value);
  }
  template <class T>
  void optional(std::string_view name, const std::optional<T>& number) {
    if (number) json_.field(name, *number);
  }
  template <class T, class Fields>
  void optional(std::string_view name, const std::optional<T>& value, Fields fields) {
    if (value) object(name, *value, fields);
  }

  template <class T, class Fields>
  void optional_block(std::string_view name, const std::optional<T>& value, Fields fields) {
    if (value) block(name, *value, fields);
  }
  template <class T, class Fields>
  void nullable_block(std::string_view name, const std::optional<T>& value, Fields fields) {
    value ? block(name, *value, fields) : null(name);
  }
  template <class T, class Fields>
  void nullable_object(std::string_view name, const std::optional<T>& value, Fields fields) {
    value ? object(name, *value, fields) : null(name);
  }
  template <class T, class Fields>
  void block(std::string_view name, const T& value, Fields fields) {
    json_.key(name);
    json_.begin_object();
    fields(*this, value);
    json_.end_object();
  }
  template <class Fields>
  void part(std::string_view, bool there, Fields fields) {
    if (there) fields();
  }

  template <class T, class Fields>
  void object(std::string_view name, const T& value, Fields fields) {
    json_.key(name);
    line(value, fields);
  }
  template <class T, class Fields>
  void list(std::string_view name, const std::vector<T>& values, Fields fields) {
    json_.key(name);
    json_.begin_array();
    for (const T& value : values) line(value, fields);
    json_.end_array();
  }
  template <class T, class Fields>
  void table(std::string_view name, const std::vector<T>& rows, Fields fields) {
    if (tables_ == Tables::by_row) return list(name, rows, fields);
    json_.key(name);
    json_.begin_object(Style::compact);
    for (std::size_t column = 0; column < column_count<T>(fields); ++column) {
      const T any{};
      use_field(any, fields, column,
                [&](std::string_view column_name, const auto&) { json_.key(column_name); });
      ColumnWriter items(json_);
      for (const T& row : rows)
        use_field(row, fields, column, [&](std::string_view, const auto& value) { items.add(value); });
    }
    json_.end_object();
  }
  template <class T, class Fields>
  void list_where(bool there, std::string_view name, const std::vector<T>& values, Fields fields) {
    if (there) list(name, values, fields);
  }
  template <class Values, class Fields>
  void blocks(std::string_view name, const Values& values, Fields fields) {
    json_.key(name);
    json_.begin_array();
    for (const auto& value : values) {
      json_.begin_object();
      fields(*this, value);
      json_.end_object();
    }
    json_.end_array();
  }

  void constant(std::string_view name, std::string_view text) { json_.field(name, text); }
  void known(std::string_view name, double number) {
    std::isfinite(number) ? json_.field(name, number) : null(name);
  }
  void known(std::string_view name, const std::pair<double, double>& bounds) {
    if (!std::isfinite(bounds.first) || !std::isfinite(bounds.second)) return null(name);
    range(name, {bounds.first, bounds.second});
  }
  void scaled(std::string_view name, double number, double unit) { json_.field(name, number / unit); }
  void optional_text(std::string_view name, const std::string& text) {
    if (!text.empty()) json_.field(name, text);
  }
  void nullable_text(std::string_view name, const std::string& text) {
    text.empty() ? null(name) : json_.field(name, text);
  }
  template <class Enumeration, std::size_t count>
  void choice(std::string_view name, Enumeration value, const std::array<Enumeration, count>&) {
    json_.field(name, to_string(value));
  }
  template <class T>
  void count(std::string_view, const std::vector<T>&) {}
  void range(std::string_view name, const std::array<double, 2>& bounds) {
    json_.key(name);
    json_.begin_array(Style::compact);
    for (const double bound : bounds) json_.value(bound);
    json_.end_array();
  }
  void texts(std::string_view name, const std::vector<std::string>& texts) {
    json_.key(name);
    json_.begin_array(Style::compact);
    for (const std::string& text : texts) json_.value(std::string_view(text));
    json_.end_array();
  }
  void lines(std::string_view name, const std::vector<std::string>& texts) {
    json_.key(name);
    json_.begin_array();
    for (const std::string& text : texts) json_.value(std::string_view(text));
    json_.end_array();
  }
  void nullable_range(std::string_view name, const std::optional<std::array<double, 2>>& bounds) {
    bounds ? range(name, *bounds) : null(name);
  }
  void points(std::string_view name,
              const std::vector<std::vector<std::pair<std::string, YamlNode>>>& points) {
    json_.key(name);
    json_.begin_array();
    for (const auto& each : points) {
      json_.begin_object(Style::compact);
      for (const auto& [path, value] : each) json_.field(path, value);
      json_.end_object();
    }
    json_.end_array();
  }
  template <class Terms>
  void pairs(std::string_view name, const Terms& terms) {
    json_.key(name);
    json_.begin_object();
    for (const auto& term : terms) {
      json_.key(term.name);
      json_.begin_array(Style::compact);
      for (const std::optional<double>& value : term.values) value ? json_.value(*value) : json_.null();
      json_.end_array();
    }
    json_.end_object();
  }
  template <class Cells>
  void cells(const Cells& cells) {
    for (const auto& [column, text] : cells)
      if (const std::optional<double> number = parse_number(text))
        json_.field(column, *number);
      else
        json_.field(column, text);
  }
  void in_unit(std::string_view name, const std::string& unit, double number) {
    json_.field(std::string(name) + "_" + unit, number);
  }
  template <class Counts>
  void counts(std::string_view name, const Counts& counts) {
    json_.key(name);
    json_.begin_object(Style::compact);
    for (const auto& [key, number] : counts) json_.field(key, number);
    json_.end_object();
  }
  void map(std::string_view name, const std::vector<std::pair<std::string, std::string>>& pairs) {
    json_.key(name);
    json_.begin_object();
    for (const auto& [key, text] : pairs) json_.field(key, text);
    json_.end_object();
  }
  void point(std::string_view name, const std::vector<std::pair<std::string, YamlNode>>& point) {
    json_.key(name);
    json_.begin_object(Style::compact);
    for (const auto& [path, value] : point) json_.field(path, value);
    json_.end_object();
  }
  void nullable_point(std::string_view name,
                      const std::optional<std::vector<std::pair<std::string, YamlNode>>>& value) {
    value ? point(name, *value) : null(name);
  }
  void numbers(std::string_view name, const std::vector<double>& numbers) {
    json_.key(name);
    json_.begin_array(Style::compact);
    for (const double number : numbers) json_.value(number);
    json_.end_array();
  }
  void named_numbers(std::string_view name, const std::vector<std::pair<std::string, double>>& numbers) {
    if (numbers.empty()) return null(name);
    json_.key(name);
    json_.begin_object(Style::compact);
    for (const auto& [each, number] : numbers) json_.field(each, number);
    json_.end_object();
  }
  void optional_yaml(std::string_view name, const std::optional<YamlNode>& node) {
    if (node) yaml(name, *node);
  }
  void yaml(std::string_view name, const YamlNode& node) { json_.field(name, node); }
  void memory(std::string_view name, const std::array<double, memory_class_count>& bytes) {
    json_.key(name);
    json_.begin_object();
    for (std::size_t c = 0; c < memory_class_count; ++c) json_.field(memory_class_names[c], bytes[c]);
    json_.end_object();
  }
  void null(std::string_view name) {
    json_.key(name);
    json_.null();
  }

 private:
  template <class T, class Fields>
  void line(const T& value, Fields fields) {
    json_.begin_object(Style::compact);
    fields(*this, value);
    json_.end_object();
  }

  JsonWriter& json_;
  Tables tables_;
};

}  // namespace convoy::results
