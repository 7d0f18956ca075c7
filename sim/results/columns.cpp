// SPDX-License-Identifier: MIT
#include "sim/results/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/quantity.h"
#include "sim/results/json_writer.h"
#include "sim/results/result_fields.h"

namespace convoy::inline results {
namespace {

/// The archive of result_fields.h that makes columns: of numbers, booleans and texts, with members of single
/// objects as "object_name". Lists are in results.json only.
class ColumnWriter {
 public:
  struct Column {
    std::string name;
    const char* sql_type;
    RunTable::Value value;
    bool always = true;  ///< present even if no run has a value
  };
  std::vector<Column> columns;

  void field(std::string_view name, const std::string& text) { add(name, "TEXT", text); }
  void field(std::string_view name, double number) { add(name, "REAL", number); }
  void field(std::string_view name, bool truth) { add(name, "BOOLEAN", truth); }
  void field(std::string_view name, std::int64_t number) { add(name, "INTEGER", number); }
  void nullable(std::string_view name, const std::optional<double>& number) {
    add(name, "REAL", number ? RunTable::Value(*number) : RunTable::Value());
  }
  void truth(std::string_view name, bool value) {
    within("", value, false, [&] { field(name, value); });
  }
  void optional(std::string_view name, const std::optional<double>& number) {
    within("", number.has_value(), false, [&] { field(name, number.value_or(0)); });
  }
  template <class T, class Fields>
  void optional(std::string_view name, const std::optional<T>& value, Fields fields) {
    within(name, value.has_value(), false, [&] { fields(*this, value ? *value : T{}); });
  }
  template <class T, class Fields>
  void optional_block(std::string_view name, const std::optional<T>& value, Fields fields) {
    optional(name, value, fields);
  }
  template <class T, class Fields>
  void object(std::string_view name, const T& value, Fields fields) {
    within(name, there_, always_, [&] { fields(*this, value); });
  }
  template <class T>
  void count(std::string_view name, const std::vector<T>& values) {
    add(name, "INTEGER", static_cast<std::int64_t>(values.size()));
  }
  void range(std::string_view name, const std::array<double, 2>& bounds) {
    field(fmt::format("{}_low", name), bounds[0]);
    field(fmt::format("{}_high", name), bounds[1]);
  }
  template <class... Rest>
  void list(const Rest&...) {}
  template <class... Rest>
  void list_where(const Rest&...) {}
  template <class... Rest>
  void texts(const Rest&...) {}
  template <class... Rest>
  void memory(const Rest&...) {}
  void point(std::string_view, const std::vector<std::pair<std::string, YamlNode>>&) {
  }  // columns of their own
  void null(std::string_view) {}

 private:
  void add(std::string_view name, const char* sql_type, RunTable::Value value) {
    if (!there_) value = {};
    columns.push_back({prefix_ + std::string(name), sql_type, std::move(value), always_});
  }
  template <class Inside>
  void within(std::string_view name, bool there, bool always, Inside inside) {
    const std::string prefix = prefix_;
    const bool was_there = std::exchange(there_, there), was_always = std::exchange(always_, always);
    if (!name.empty()) prefix_ += std::string(name) + '_';
    inside();
    prefix_ = prefix;
    there_ = was_there, always_ = was_always;
  }

  std::string prefix_;
  bool there_ = true, always_ = true;
};

std::vector<ColumnWriter::Column> columns_of(const RunResult& run) {
  ColumnWriter archive;
  run_fields(archive, run);
  return std::move(archive.columns);
}

/// As results.json has it (JsonWriter::value): a number or truth where it is written as one.
RunTable::Value coordinate(const YamlNode& value) {
  if (value.kind != YamlNode::Kind::scalar) return to_flow(value);
  if (!value.quoted) {
    if (value.scalar == "true" || value.scalar == "false") return value.scalar == "true";
    if (const std::optional<double> number = parse_number(value.scalar)) return *number;
  }
  return value.scalar;
}

RunTable::Cell text_of(const RunTable::Value& value) {
  if (const double* number = std::get_if<double>(&value)) return shortest(*number);
  if (const std::int64_t* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return std::nullopt;
}

}  // namespace

RunTable::RunTable(const Results& results)
    : results_(results), efficiency_(scaling_efficiency(results.runs)) {
  const std::vector<ColumnWriter::Column> fields = columns_of(RunResult{});
  for (const ColumnWriter::Column& field : fields) shown_.push_back(field.always);
  for (const RunResult& run : results.runs) {
    const std::vector<ColumnWriter::Column> columns = columns_of(run);
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (columns[c].value != Value()) shown_[c] = true;
  }
  if (!results.runs.empty())
    for (const auto& [path, value] : results.runs.front().point) {
      const bool taken =
          std::any_of(fields.begin(), fields.end(), [&](const auto& f) { return f.name == path; });
      header_.push_back({taken ? "point." + path : path, "NUMERIC"});
    }
  for (std::size_t c = 0; c < fields.size(); ++c)
    if (shown_[c]) header_.push_back({fields[c].name, fields[c].sql_type});
  header_.push_back({"scaling_efficiency", "REAL"});
}

std::vector<RunTable::Value> RunTable::values(std::size_t run) const {
  const RunResult& result = results_.runs[run];
  std::vector<Value> values;
  for (const auto& [path, value] : result.point) values.push_back(coordinate(value));
  std::vector<ColumnWriter::Column> columns = columns_of(result);
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (shown_[c]) values.push_back(std::move(columns[c].value));
  values.push_back(efficiency_.empty() ? Value() : Value(efficiency_[run]));
  return values;
}

std::vector<RunTable::Cell> RunTable::row(std::size_t run) const {
  std::vector<Cell> cells;
  for (const Value& value : values(run)) cells.push_back(text_of(value));
  // Coordinates are written as the user wrote them: 1e3, not 1000.
  const auto& point = results_.runs[run].point;
  for (std::size_t c = 0; c < point.size(); ++c)
    if (point[c].second.kind == YamlNode::Kind::scalar) cells[c] = point[c].second.scalar;
  return cells;
}

}  // namespace convoy::results
