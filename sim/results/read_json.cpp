// SPDX-License-Identifier: MIT
#include "sim/results/read_json.h"

#include <fmt/format.h>

#include <istream>

#include "sim/base/input_error.h"
#include "sim/results/json_reader.h"
#include "sim/results/json_writer.h"
#include "sim/results/result_fields.h"

namespace convoy {
namespace {

/// Beyond any result; keeps sums and axes finite.
constexpr double largest = 1e100;

void read(const Json& value, const JsonPlace& place, double& number) {
  if (!value.is_number()) throw JsonError(place, fmt::format("expected a number, not {}", kind_of(value)));
  number = value.get<double>();
  if (number < 0) throw JsonError(place, "expected a number that is not below zero");
  if (number > largest) throw JsonError(place, "a number that large is no result");
}

void read(const Json& value, const JsonPlace& place, std::int64_t& number) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
    throw JsonError(place, "expected a whole number that is not below zero");
  number = value.get<std::int64_t>();
}

void read(const Json& value, const JsonPlace& place, std::uint64_t& number) {
  // written as the signed number of the same bits
  if (!value.is_number_integer()) throw JsonError(place, "expected a whole number");
  number = static_cast<std::uint64_t>(value.get<std::int64_t>());
}

void read(const Json& value, const JsonPlace& place, bool& truth) {
  if (!value.is_boolean())
    throw JsonError(place, fmt::format("expected true or false, not {}", kind_of(value)));
  truth = value.get<bool>();
}

void read(const Json& value, const JsonPlace& place, std::string& text) {
  if (!value.is_string()) throw JsonError(place, fmt::format("expected text, not {}", kind_of(value)));
  text = value.get<std::string>();
}

/// The inverse of JsonWriter::value(YamlNode).
YamlNode yaml_of(const Json& value) {
  YamlNode node;
  switch (value.type()) {
    case Json::value_t::null:
      return node;
    case Json::value_t::array:
      node.kind = YamlNode::Kind::sequence;
      for (const Json& item : value) node.items.push_back(yaml_of(item));
      return node;
    case Json::value_t::object:
      node.kind = YamlNode::Kind::mapping;
      for (const auto& [name, content] : value.items()) node.entries.emplace_back(name, yaml_of(content));
      return node;
    default:
      break;
  }
  node.kind = YamlNode::Kind::scalar;
  node.quoted = value.is_string();
  node.scalar = value.is_string()    ? value.get<std::string>()
                : value.is_boolean() ? (value.get<bool>() ? "true" : "false")
                                     : shortest(value.get<double>());
  return node;
}

/// The reading archive of result_fields.h.
class FieldReader {
 public:
  FieldReader(const Json& value, const JsonPlace& place) : object_(value, place) {}

  template <class T>
  void field(std::string_view name, T& value) {
    read(object_.get(name), at(name), value);
  }
  void nullable(std::string_view name, std::optional<double>& number) {
    const Json& value = object_.get(name);
    if (!value.is_null()) read(value, at(name), number.emplace());
  }
  void optional(std::string_view name, std::optional<double>& number) {
    if (const Json* value = object_.find(name)) read(*value, at(name), number.emplace());
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
  void list_where(bool, std::string_view name, std::vector<T>& values, Fields fields) {
    const Json* value = object_.find(name);
    if (!value) return;
    items(name, *value, [&](const Json& item, const JsonPlace& place) {
      whole(item, place, values.emplace_back(), fields);
    });
  }
  void texts(std::string_view name, std::vector<std::string>& texts) {
    items(name, object_.get(name),
          [&](const Json& item, const JsonPlace& place) { read(item, place, texts.emplace_back()); });
  }
  void map(std::string_view name, std::vector<std::pair<std::string, std::string>>& pairs) {
    const JsonPlace place = at(name);
    const Json& value = object_.get(name);
    JsonObject(value, place);
    for (const auto& [key, text] : value.items()) {
      pairs.emplace_back(key, std::string{});
      read(text, JsonPlace{&place, key}, pairs.back().second);
    }
  }
  void point(std::string_view name, std::vector<std::pair<std::string, YamlNode>>& point) {
    const Json& value = object_.get(name);
    JsonObject(value, at(name));
    for (const auto& [path, coordinate] : value.items()) point.emplace_back(path, yaml_of(coordinate));
  }
  void yaml(std::string_view name, YamlNode& node) { node = yaml_of(object_.get(name)); }
  void memory(std::string_view name, std::array<double, memory_class_count>& bytes) {
    const JsonPlace place = at(name);
    FieldReader classes(object_.get(name), place);
    for (std::size_t c = 0; c < memory_class_count; ++c) classes.field(memory_class_names[c], bytes[c]);
    classes.finish();
  }
  template <class Range>
  void range(std::string_view name, Range& range) {
    std::vector<double> ends;
    items(name, object_.get(name),
          [&](const Json& item, const JsonPlace& place) { read(item, place, ends.emplace_back()); });
    if (ends.size() != 2 || ends[0] > ends[1])
      throw JsonError(at(name), "expected two numbers, the smaller one first");
    range.low = ends[0];
    range.high = ends[1];
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

/// Runs of one sweep have the same coordinates.
void check_point(const RunResult& run, const RunResult& first, const JsonPlace& place) {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!std::equal(run.point.begin(), run.point.end(), first.point.begin(), first.point.end(), same))
    throw JsonError(place, "its point has other names than the first run's");
}

void check_schema(const std::string& schema) {
  if (schema != results_schema)
    throw JsonError(fmt::format("its schema is '{}'; this program reads '{}'", schema, results_schema));
}

Results read_document(std::istream& in) {
  Results results;
  bool schema = false;
  const JsonPlace root, runs{&root, "runs"};
  const auto need_schema = [&] {
    if (!schema)
      throw JsonError(
          fmt::format("no results of convoy: does not begin with \"schema\": \"{}\"", results_schema));
  };
  Json rest = parse_json(
      in, "runs",
      [&](const std::string& name, const Json& value) {
        if (name == "schema" && value.is_string()) {
          check_schema(value.get<std::string>());
          schema = true;
        }
        need_schema();
      },
      [&](std::size_t index, const Json& item) {
        need_schema();
        const JsonPlace place{&runs, {}, index};
        FieldReader::whole(item, place, results.runs.emplace_back(), run_fields);
        if (results.runs.back().devices == 0) throw JsonError(place, "a run without devices");
        check_point(results.runs.back(), results.runs.front(), place);
      });
  need_schema();
  FieldReader document(rest, root);
  std::string name;
  document.field("schema", name);
  document.field("experiment", results.experiment);
  std::vector<RunResult> left;  // the runs have been handed over, but something else may stand for the list
  document.list("runs", left, run_fields);
  document.list_where(false, "schedules", results.schedules, schedule_fields);
  document.object("manifest", results.manifest, manifest_fields);
  document.finish();
  for (RunResult& run : results.runs) run.network_model = results.manifest.network_model;
  return results;
}

}  // namespace

Results read_json(std::istream& in, const std::string& file) {
  try {
    return read_document(in);
  } catch (const JsonError& error) {
    throw InputError({file, 0, 0}, error.what());
  }
}

}  // namespace convoy
