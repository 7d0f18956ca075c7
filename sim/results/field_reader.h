// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/training_graph.h"
#include "sim/base/yaml_node.h"
#include "sim/results/json_reader.h"

namespace convoy::inline results {

/// Larger than any result, but such that sums and axes stay finite.
inline constexpr double largest_result = 1e100;

// Values of results: numbers that are 0, or from 1e-100 to largest_result (whole ones if the type of the
// field is), booleans and texts. @throws JsonError at `place` for another kind
void read_value(const Json& value, const JsonPlace& place, double& number);
void read_signed(const Json& value, const JsonPlace& place, double& number);  ///< may be negative
void read_value(const Json& value, const JsonPlace& place, std::int64_t& number);
void read_value(const Json& value, const JsonPlace& place, std::uint64_t& number);
void read_value(const Json& value, const JsonPlace& place, bool& truth);
void read_value(const Json& value, const JsonPlace& place, std::string& text);

/// The inverse of JsonWriter::value(YamlNode).
YamlNode yaml_of_json(const Json& value);

/// The reading archive of result_fields.h.
class FieldReader {
 public:
  FieldReader(const Json& value, const JsonPlace& place) : object_(value, place) {}

  template <class T>
  void field(std::string_view name, T& value) {
    read_value(object_.get(name), at(name), value);
  }
  void gain(std::string_view name, double& number) { read_signed(object_.get(name), at(name), number); }
  void gain(std::string_view name, std::optional<double>& number) {
    const Json& value = object_.get(name);
    if (!value.is_null()) read_signed(value, at(name), number.emplace());
  }
  void nullable(std::string_view name, std::optional<double>& number) {
    const Json& value = object_.get(name);
    if (!value.is_null()) read_value(value, at(name), number.emplace());
  }
  void truth(std::string_view name, bool& value) {
    if (const Json* there = object_.find(name)) read_value(*there, at(name), value);
  }
  template <class T>
  void optional(std::string_view name, std::optional<T>& number) {
    if (const Json* value = object_.find(name)) read_value(*value, at(name), number.emplace());
  }
  template <class T, class Fields>
  void optional(std::string_view name, std::optional<T>& value, Fields fields) {
    if (const Json* there = object_.find(name)) whole(*there, at(name), value.emplace(), fields);
  }
  template <class T, class Fields>
  void optional_block(std::string_view name, std::optional<T>& value, Fields fields) {
    optional(name, value, fields);
  }
  template <class T, class Fields>
  void nullable_block(std::string_view name, std::optional<T>& value, Fields fields) {
    const Json& there = object_.get(name);
    if (!there.is_null()) whole(there, at(name), value.emplace(), fields);
  }
  template <class T, class Fields>
  void block(std::string_view name, T& value, Fields fields) {
    object(name, value, fields);
  }
  template <class Fields>
  void part(std::string_view name, bool& there, Fields fields) {
    there = object_.has(name);
    if (there) fields();
  }
  template <class T, class Fields>
  void object(std::string_view name, T& value, Fields fields) {
    whole(object_.get(name), at(name), value, fields);
  }
  template <class T, class Fields>
  void list(std::string_view name, std::vector<T>& values, Fields fields) {
    items(name, object_.get(name), [&](const Json& item, const JsonPlace& place) {
      whole(item, place, values.emplace_back(), fields);
    });
  }
  template <class T, class Fields>
  void table(std::string_view name, std::vector<T>& rows, Fields fields) {
    list(name, rows, fields);
  }
  template <class T, class Fields>
  void blocks(std::string_view name, std::vector<T>& values, Fields fields) {
    list(name, values, fields);
  }
  template <class T, class Fields>
  void list_where(bool, std::string_view name, std::vector<T>& values, Fields fields) {
    const Json* value = object_.find(name);
    if (!value) return;
    items(name, *value, [&](const Json& item, const JsonPlace& place) {
      whole(item, place, values.emplace_back(), fields);
    });
  }
  void constant(std::string_view name, std::string_view text) {
    std::string found;
    field(name, found);
    if (found != text) throw JsonError(at(name), fmt::format("expected '{}', not '{}'", text, found));
  }
  void known(std::string_view name, double& number) {
    number = std::numeric_limits<double>::infinity();
    const Json& value = object_.get(name);
    if (!value.is_null()) read_value(value, at(name), number);
  }
  void known(std::string_view name, std::pair<double, double>& bounds) {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    bounds = {unknown, unknown};
    if (object_.get(name).is_null()) return;
    std::array<double, 2> found{};
    range(name, found);
    bounds = {found[0], found[1]};
  }
  void scaled(std::string_view name, double& number, double unit) {
    field(name, number);
    number *= unit;
  }
  void optional_text(std::string_view name, std::string& text) {
    if (const Json* value = object_.find(name)) read_value(*value, at(name), text);
  }
  void nullable_text(std::string_view name, std::string& text) {
    const Json& value = object_.get(name);
    if (!value.is_null()) read_value(value, at(name), text);
  }
  template <class Enumeration, std::size_t count>
  void choice(std::string_view name, Enumeration& value, const std::array<Enumeration, count>& all) {
    std::string found;
    field(name, found);
    for (const Enumeration each : all)
      if (to_string(each) == found) {
        value = each;
        return;
      }
    throw JsonError(at(name), fmt::format("'{}' is not known", found));
  }
  template <class T>
  void count(std::string_view, const std::vector<T>&) {}
  void range(std::string_view name, std::array<double, 2>& bounds) {
    const JsonPlace place = at(name);
    const Json& list = object_.get(name);
    if (!list.is_array() || list.size() != bounds.size())
      throw JsonError(place, fmt::format("expected a list of {} numbers", bounds.size()));
    for (std::size_t i = 0; i < bounds.size(); ++i) read_value(list[i], JsonPlace{&place, {}, i}, bounds[i]);
  }
  void nullable_range(std::string_view name, std::optional<std::array<double, 2>>& bounds) {
    if (!object_.get(name).is_null()) range(name, bounds.emplace());
  }
  void texts(std::string_view name, std::vector<std::string>& texts) {
    items(name, object_.get(name),
          [&](const Json& item, const JsonPlace& place) { read_value(item, place, texts.emplace_back()); });
  }
  void lines(std::string_view name, std::vector<std::string>& list) { texts(name, list); }
  template <class Counts>
  void counts(std::string_view name, Counts& counts) {
    const JsonPlace place = at(name);
    const Json& value = object_.get(name);
    JsonObject(value, place);
    for (const auto& [key, item] : value.items()) {
      std::int64_t number = 0;
      read_value(item, JsonPlace{&place, key}, number);
      counts.insert(counts.end(), {key, number});
    }
  }
  void map(std::string_view name, std::vector<std::pair<std::string, std::string>>& pairs) {
    const JsonPlace place = at(name);
    const Json& value = object_.get(name);
    JsonObject(value, place);
    for (const auto& [key, text] : value.items()) {
      pairs.emplace_back(key, std::string{});
      read_value(text, JsonPlace{&place, key}, pairs.back().second);
    }
  }
  void point(std::string_view name, std::vector<std::pair<std::string, YamlNode>>& point) {
    const Json& value = object_.get(name);
    JsonObject(value, at(name));
    for (const auto& [path, coordinate] : value.items()) point.emplace_back(path, yaml_of_json(coordinate));
  }
  void yaml(std::string_view name, YamlNode& node) { node = yaml_of_json(object_.get(name)); }
  void memory(std::string_view name, std::array<double, memory_class_count>& bytes) {
    const JsonPlace place = at(name);
    FieldReader classes(object_.get(name), place);
    for (std::size_t c = 0; c < memory_class_count; ++c) classes.field(memory_class_names[c], bytes[c]);
    classes.finish();
  }
  void null(std::string_view name) {
    if (!object_.get(name).is_null()) throw JsonError(at(name), "expected null");
  }
  void finish() const { object_.finish(); }

  template <class T, class Fields>
  static void whole(const Json& value, const JsonPlace& place, T& result, Fields fields) {
    FieldReader reader(value, place);
    fields(reader, result);
    reader.finish();
  }

 private:
  JsonPlace at(std::string_view name) const { return {&object_.place(), name}; }

  template <class Read>
  void items(std::string_view name, const Json& list, Read read_item) {
    const JsonPlace place = at(name);
    if (!list.is_array()) throw JsonError(place, fmt::format("expected a list, not {}", kind_of(list)));
    std::size_t index = 0;
    for (const Json& item : list) read_item(item, JsonPlace{&place, {}, index++});
  }

  JsonObject object_;
};

}  // namespace convoy::results
