// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/results/json_writer.h"

namespace convoy::inline results {

/// The writing archive of result_fields.h.
class FieldWriter {
  using Style = JsonWriter::Style;

 public:
  explicit FieldWriter(JsonWriter& json) : json_(json) {}

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
  void optional(std::string_view name, const std::optional<double>& number) {
    if (number) json_.field(name, *number);
  }
  template <class T, class Fields>
  void optional(std::string_view name, const std::optional<T>& value, Fields fields) {
    if (value) object(name, *value, fields);
  }

  template <class T, class Fields>
  void optional_block(std::string_view name, const std::optional<T>& value, Fields fields) {
    if (!value) return;
    json_.key(name);
    json_.begin_object();
    fields(*this, *value);
    json_.end_object();
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
  void list_where(bool there, std::string_view name, const std::vector<T>& values, Fields fields) {
    if (there) list(name, values, fields);
  }
  template <class T, class Fields>
  void blocks(std::string_view name, const std::vector<T>& values, Fields fields) {
    json_.key(name);
    json_.begin_array();
    for (const T& value : values) {
      json_.begin_object();
      fields(*this, value);
      json_.end_object();
    }
    json_.end_array();
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
};

}  // namespace convoy::results
