// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/results/json_reader.h"

namespace convoy::inline results {

/// The archive of result_fields.h that makes the JSON Schema of what is written: of a default value, whose
/// numbers do not matter.
class FieldSchema {
 public:
  template <class T>
  void field(std::string_view name, const T&) {
    add(name, of_type<T>());
  }
  template <class T>
  void gain(std::string_view name, const T&) {
    add(name, std::is_same_v<T, double> ? Json{{"type", "number"}} : or_null("number"));
  }
  void nullable(std::string_view name, const std::optional<double>&) { add(name, or_null("number")); }
  void truth(std::string_view name, bool) { add_where(name, {{"const", true}}); }
  template <class T>
  void optional(std::string_view name, const std::optional<T>&) {
    add_where(name, of_type<T>());
  }
  template <class T, class Fields>
  void optional(std::string_view name, const std::optional<T>&, Fields fields) {
    add_where(name, schema_of<T>(fields));
  }
  template <class T, class Fields>
  void optional_block(std::string_view name, const std::optional<T>& value, Fields fields) {
    optional(name, value, fields);
  }
  template <class T, class Fields>
  void nullable_block(std::string_view name, const std::optional<T>&, Fields fields) {
    add(name, {{"anyOf", Json::array({schema_of<T>(fields), {{"type", "null"}}})}});
  }
  template <class T, class Fields>
  void nullable_object(std::string_view name, const std::optional<T>& value, Fields fields) {
    nullable_block(name, value, fields);
  }
  template <class T, class Fields>
  void object(std::string_view name, const T&, Fields fields) {
    add(name, schema_of<T>(fields));
  }
  template <class T, class Fields>
  void block(std::string_view name, const T&, Fields fields) {
    add(name, schema_of<T>(fields));
  }
  template <class Fields>
  void part(std::string_view, bool, Fields fields) {
    const bool was_sure = std::exchange(sure_, false);
    fields();
    sure_ = was_sure;
  }
  template <class T, class Fields>
  void list(std::string_view name, const std::vector<T>&, Fields fields) {
    add(name, list_of(schema_of<T>(fields)));
  }
  template <class T, class Fields>
  void table(std::string_view name, const std::vector<T>& rows, Fields fields) {
    list(name, rows, fields);
  }
  template <class T, class Fields>
  void blocks(std::string_view name, const std::vector<T>& values, Fields fields) {
    list(name, values, fields);
  }
  template <class T, class Fields>
  void list_where(bool, std::string_view name, const std::vector<T>&, Fields fields) {
    add_where(name, list_of(schema_of<T>(fields)));
  }
  template <class T>
  void count(std::string_view, const std::vector<T>&) {}

  void constant(std::string_view name, std::string_view text) { add(name, {{"const", text}}); }
  void known(std::string_view name, double) { add(name, or_null("number")); }
  void known(std::string_view name, const std::pair<double, double>&) {
    add(name, {{"anyOf", Json::array({two({{"type", "number"}}), {{"type", "null"}}})}});
  }
  void scaled(std::string_view name, double, double) { add(name, {{"type", "number"}}); }
  void optional_text(std::string_view name, const std::string&) { add_where(name, {{"type", "string"}}); }
  void nullable_text(std::string_view name, const std::string&) { add(name, or_null("string")); }
  template <class Enumeration, std::size_t count>
  void choice(std::string_view name, Enumeration, const std::array<Enumeration, count>& all) {
    Json words = Json::array();
    for (const Enumeration each : all) words.push_back(to_string(each));
    add(name, {{"enum", std::move(words)}});
  }
  void range(std::string_view name, const std::array<double, 2>&) { add(name, two({{"type", "number"}})); }
  void nullable_range(std::string_view name, const std::optional<std::array<double, 2>>&) {
    add(name, {{"anyOf", Json::array({two({{"type", "number"}}), {{"type", "null"}}})}});
  }
  void texts(std::string_view name, const std::vector<std::string>&) {
    add(name, list_of({{"type", "string"}}));
  }
  void lines(std::string_view name, const std::vector<std::string>& list) { texts(name, list); }
  template <class Counts>
  void counts(std::string_view name, const Counts&) {
    add(name, names_of({{"type", "integer"}}));
  }
  template <class Pairs>
  void map(std::string_view name, const Pairs&) {
    add(name, names_of({{"type", "string"}}));
  }
  template <class Point>
  void point(std::string_view name, const Point&) {
    add(name, names_of(Json::object()));
  }
  template <class Points>
  void points(std::string_view name, const Points&) {
    add(name, list_of(names_of(Json::object())));
  }
  template <class Terms>
  void pairs(std::string_view name, const Terms&) {
    add(name, names_of(two(or_null("number"))));
  }
  template <class Cells>
  void cells(const Cells&) {
    further_ = {{"type", {"string", "number"}}};
  }
  void in_unit(std::string_view name, const std::string&, double) {
    patterns_[std::string("^") + std::string(name) + "_"] = {{"type", "number"}};
  }
  template <class Point>
  void nullable_point(std::string_view name, const std::optional<Point>&) {
    add(name, {{"type", Json::array({"object", "null"})}});
  }
  void numbers(std::string_view name, const std::vector<double>&) {
    add(name, list_of({{"type", "number"}}));
  }
  void named_numbers(std::string_view name, const std::vector<std::pair<std::string, double>>&) {
    Json numbers = names_of({{"type", "number"}});
    numbers["type"] = Json::array({"object", "null"});
    add(name, std::move(numbers));
  }
  template <class Value>
  void optional_yaml(std::string_view name, const std::optional<Value>&) {
    add_where(name, Json::object());
  }
  template <class Value>
  void yaml(std::string_view name, const Value&) {
    add(name, Json::object());
  }
  void memory(std::string_view name, const std::array<double, memory_class_count>&) {
    FieldSchema classes;
    for (const std::string_view each : memory_class_names) classes.field(each, 0.0);
    add(name, classes.made());
  }
  void null(std::string_view name) { add(name, {{"type", "null"}}); }

  /// The schema of a value that is written by these fields.
  template <class T, class Fields>
  static Json schema_of(Fields fields) {
    FieldSchema archive;
    T value{};
    fields(archive, value);
    return archive.made();
  }

 private:
  template <class T>
  static Json of_type() {
    if constexpr (std::is_same_v<T, bool>)
      return {{"type", "boolean"}};
    else if constexpr (std::is_integral_v<T>)
      return {{"type", "integer"}};
    else if constexpr (std::is_floating_point_v<T>)
      return {{"type", "number"}};
    else
      return {{"type", "string"}};
  }
  static Json or_null(const char* type) { return {{"type", Json::array({type, "null"})}}; }
  static Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
  static Json names_of(Json values) {
    return {{"type", "object"}, {"additionalProperties", std::move(values)}};
  }
  static Json two(Json items) {
    return {{"type", "array"}, {"items", std::move(items)}, {"minItems", 2}, {"maxItems", 2}};
  }

  void add(std::string_view name, Json schema) {
    properties_[std::string(name)] = std::move(schema);
    if (sure_) required_.push_back(name);
  }
  void add_where(std::string_view name, Json schema) { properties_[std::string(name)] = std::move(schema); }
  Json made() const {
    Json schema{{"type", "object"}, {"additionalProperties", further_}, {"properties", properties_}};
    if (!patterns_.empty()) schema["patternProperties"] = patterns_;
    if (!required_.empty()) schema["required"] = required_;
    return schema;
  }

  Json properties_ = Json::object(), patterns_ = Json::object(), required_ = Json::array(), further_ = false;
  bool sure_ = true;  ///< what is added is always there
};

/// JSON Schema of a document that is written by these fields, as text.
template <class T, class Fields>
std::string schema_text(Fields fields) {
  return FieldSchema::schema_of<T>(fields).dump();
}

}  // namespace convoy::results
