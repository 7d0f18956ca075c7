// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/results/field_at.h"
#include "sim/results/json_reader.h"

namespace convoy::inline results {

/// The reading archive (result_fields.h) for what FieldWriter has written, tables by column: names are in the order of the
/// table, so that each is only compared with the next one (for results.json, which others may have written,
/// there is FieldReader). @throws JsonError: the text is not JSON, or has other fields or values
class StoredReader {
 public:
  explicit StoredReader(const std::string& text);
  StoredReader(const StoredReader&) = delete;
  StoredReader& operator=(const StoredReader&) = delete;
  ~StoredReader();

  template <class T>
  void field(std::string_view name, T& value) {
    require(name);
    read(value);
  }
  void gain(std::string_view name, double& number);
  void gain(std::string_view name, std::optional<double>& number);
  void nullable(std::string_view name, std::optional<double>& number);
  void truth(std::string_view name, bool& value) {
    if (find(name)) read(value);
  }
  void optional(std::string_view name, std::optional<double>& number) {
    if (find(name)) read(number.emplace());
  }
  template <class T, class Fields>
  void optional(std::string_view name, std::optional<T>& value, Fields fields) {
    if (find(name)) whole(value.emplace(), fields);
  }
  template <class T, class Fields>
  void optional_block(std::string_view name, std::optional<T>& value, Fields fields) {
    optional(name, value, fields);
  }
  template <class T, class Fields>
  void object(std::string_view name, T& value, Fields fields) {
    require(name);
    whole(value, fields);
  }
  template <class T, class Fields>
  void list(std::string_view name, std::vector<T>& values, Fields fields) {
    require(name);
    items([&] { whole(values.emplace_back(), fields); });
  }
  template <class T, class Fields>
  void table(std::string_view name, std::vector<T>& rows, Fields fields) {
    require(name);
    enter_object();
    for (std::size_t column = 0; column < column_count<T>(fields); ++column) {
      T cell;  // in its field of this column
      use_field(cell, fields, column, [&](std::string_view column_name, auto&) { require(column_name); });
      if (column == 0) rows.resize(list_size());
      std::size_t row = 0;
      items([&] {
        std::int64_t times = 1;
        use_field(cell, fields, column, [&](std::string_view, auto& value) { times = read_run(value); });
        if (times < 1 || static_cast<std::uint64_t>(times) > rows.size() - row)
          throw JsonError(fmt::format("'{}' has columns of different lengths", name));
        for (; times > 0; --times) copy_field(cell, rows[row++], fields, column);
      });
      if (row < rows.size()) throw JsonError(fmt::format("'{}' has columns of different lengths", name));
    }
    leave_object();
  }
  template <class T, class Fields>
  void list_where(bool, std::string_view name, std::vector<T>& values, Fields fields) {
    if (find(name)) items([&] { whole(values.emplace_back(), fields); });
  }
  template <class T>
  void count(std::string_view, const std::vector<T>&) {}
  void range(std::string_view name, std::array<double, 2>& bounds);
  void nullable_range(std::string_view name, std::optional<std::array<double, 2>>& bounds);
  void texts(std::string_view name, std::vector<std::string>& texts);
  void map(std::string_view name, std::vector<std::pair<std::string, std::string>>& pairs);
  void yaml(std::string_view name, YamlNode& node);
  void memory(std::string_view name, std::array<double, memory_class_count>& bytes);
  void null(std::string_view name);

  /// Reads the current value, initially the whole text, as an object with exactly these fields.
  template <class T, class Fields>
  void whole(T& value, Fields fields) {
    enter_object();
    fields(*this, value);
    leave_object();
  }

 private:
  template <class ReadItem>
  void items(ReadItem read_item) {
    enter_list();
    while (next_item()) read_item();
    leave_list();
  }

  template <class T, class Fields>
  static void copy_field(const T& from, T& to, Fields fields, std::size_t column) {
    use_field(from, fields, column, [&](std::string_view, const auto& value) {
      use_field(to, fields, column, [&](std::string_view, auto& copy) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::decay_t<decltype(copy)>>)
          copy = value;
      });
    });
  }

  std::size_t list_size() const;  ///< of the current value
  /// Reads an item of a column.
  /// @returns for how many rows it stands (ColumnWriter)
  std::int64_t read_run(std::string& text);
  template <class Number>
  std::int64_t read_run(Number& number) {
    if (!is_list()) {
      read(number);
      return 1;
    }
    std::int64_t times = 0;
    enter_list();
    if (next_item()) read(number);
    if (next_item()) read(times);
    if (next_item()) throw JsonError("expected a number and how often it stands there");
    leave_list();
    return times;
  }

  /// Whether the next field of the object has this name; if so, its value becomes the current one.
  bool find(std::string_view name);
  void require(std::string_view name);  ///< it must be present
  void enter_object();
  void leave_object();
  void enter_list();
  bool next_item();  ///< whether there is one; if so, it becomes the current value
  void leave_list();

  // Reads the current value.
  bool is_null() const;
  bool is_list() const;
  void read(double& value);
  void read(std::int64_t& value);
  void read(std::uint64_t& value);
  void read(bool& value);
  void read(std::string& value);
  void read(std::array<double, 2>& bounds);
  void read(YamlNode& node);
  double signed_number() const;

  struct Document;
  std::unique_ptr<Document> document_;
};

}  // namespace convoy::results
