// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/results/json_reader.h"

namespace convoy {

/// The reading archive (result_fields.h) of what FieldWriter has written in JsonWriter's compact style: names
/// stand in the table's order and a single space after ':' and ','. Reads in one pass, without a document in
/// between; results.json, which others may have written, has FieldReader. @throws JsonError: the text is
/// anything else
class StoredReader {
 public:
  /// @pre text outlives the reader
  explicit StoredReader(std::string_view text) : text_(text) {}

  template <class T>
  void field(std::string_view name, T& value) {
    require(name);
    read(value);
  }
  void gain(std::string_view name, double& number);
  void gain(std::string_view name, std::optional<double>& number);
  void nullable(std::string_view name, std::optional<double>& number);
  void optional(std::string_view name, std::optional<double>& number) {
    if (take_name(name)) read(number.emplace());
  }
  template <class T, class Fields>
  void optional(std::string_view name, std::optional<T>& value, Fields fields) {
    if (take_name(name)) whole(value.emplace(), fields);
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
  void list_where(bool, std::string_view name, std::vector<T>& values, Fields fields) {
    if (take_name(name)) items([&] { whole(values.emplace_back(), fields); });
  }
  template <class T>
  void count(std::string_view, const std::vector<T>&) {}
  void range(std::string_view name, std::array<double, 2>& bounds);
  void texts(std::string_view name, std::vector<std::string>& texts);
  void map(std::string_view name, std::vector<std::pair<std::string, std::string>>& pairs);
  void yaml(std::string_view name, YamlNode& node);
  void memory(std::string_view name, std::array<double, memory_class_count>& bytes);
  void null(std::string_view name);

  /// Reads one object by its fields.
  template <class T, class Fields>
  void whole(T& value, Fields fields) {
    open('{');
    fields(*this, value);
    close('}');
  }
  /// The text has to end here.
  void finish() const;

 private:
  template <class ReadItem>
  void items(ReadItem read_item) {
    open('[');
    while (!at_end_of(']')) {
      separate();
      read_item();
    }
    close(']');
  }

  [[noreturn]] void fail(std::string_view expected) const;
  bool take(std::string_view word);
  void open(char bracket);
  void close(char bracket);
  bool at_end_of(char bracket) const { return at_ < text_.size() && text_[at_] == bracket; }
  void separate();
  bool take_name(std::string_view name);
  void require(std::string_view name);
  template <class Number>
  Number number(std::string_view expected);

  void read(double& value);
  void read(std::int64_t& value);
  void read(std::uint64_t& value);
  void read(bool& value);
  void read(std::string& value);
  void read(YamlNode& node, int depth);
  double signed_number();
  unsigned escaped_unit();

  std::string_view text_;
  std::size_t at_ = 0;
  bool first_ = true;  ///< nothing has been read in the innermost object or list
};

}  // namespace convoy
