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

/// The archive of result_fields.h that goes through columns: of numbers, booleans and texts, with members of
/// single objects as "object_name". Lists are in results.json only. `Sink` gets each column in turn:
///   sink(name of its object, "" or "object_"; name; SQL type; present even if no run has a value; value, or
///   nullptr for none)
template <class Sink>
class ColumnArchive {
 public:
  explicit ColumnArchive(Sink sink) : sink_(std::move(sink)) {}

  void field(std::string_view name, const std::string& text) { add(name, "TEXT", &text); }
  void field(std::string_view name, double number) { add(name, "REAL", &number); }
  void field(std::string_view name, bool truth) { add(name, "BOOLEAN", &truth); }
  void field(std::string_view name, std::int64_t number) { add(name, "INTEGER", &number); }
  void nullable(std::string_view name, const std::optional<double>& number) {
    add(name, "REAL", number ? &*number : nullptr);
  }
  void truth(std::string_view name, bool value) {
    within("", value, false, [&] { field(name, value); });
  }
  void optional(std::string_view name, const std::optional<double>& number) {
    within("", number.has_value(), false, [&] { field(name, number.value_or(0)); });
  }
  template <class T, class Fields>
  void optional(std::string_view name, const std::optional<T>& value, Fields fields) {
    static const T absent{};
    within(name, value.has_value(), false, [&] { fields(*this, value ? *value : absent); });
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
    field(name, static_cast<std::int64_t>(values.size()));
  }
  void range(std::string_view name, const std::array<double, 2>& bounds) {
    add(name, "REAL", &bounds[0], "_low");
    add(name, "REAL", &bounds[1], "_high");
  }
  void nullable_range(std::string_view name, const std::optional<std::array<double, 2>>& bounds) {
    add(name, "REAL", bounds ? &(*bounds)[0] : nullptr, "_low");
    add(name, "REAL", bounds ? &(*bounds)[1] : nullptr, "_high");
  }
  template <class... Rest>
  void list(const Rest&...) {}
  template <class... Rest>
  void table(const Rest&...) {}
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
  template <class Value>
  void add(std::string_view name, const char* sql_type, const Value* value, const char* suffix = "") {
    sink_(prefix_, name, suffix, sql_type, always_, there_ ? value : nullptr);
  }
  template <class Inside>
  void within(std::string_view name, bool there, bool always, Inside inside) {
    const std::size_t prefix = prefix_.size();
    const bool was_there = std::exchange(there_, there), was_always = std::exchange(always_, always);
    if (!name.empty()) prefix_.append(name) += '_';
    inside();
    prefix_.resize(prefix);
    there_ = was_there, always_ = was_always;
  }

  Sink sink_;
  std::string prefix_;
  bool there_ = true, always_ = true;
};

template <class Sink>
void for_each_column(const RunResult& run, Sink sink) {
  ColumnArchive<Sink> archive(std::move(sink));
  run_fields(archive, run);
}

/// As results.json has it (JsonWriter::value): a number or truth where it is written as one.
RunTable::Cell typed(const YamlNode& value) {
  if (value.kind != YamlNode::Kind::scalar) return to_flow(value);
  if (!value.quoted) {
    if (value.scalar == "true" || value.scalar == "false") return value.scalar == "true";
    if (const std::optional<double> number = parse_number(value.scalar)) return *number;
  }
  return value.scalar;
}

}  // namespace

RunTable::RunTable(const SweepResults& results) : efficiency_(scaling_efficiency(results)) {
  std::vector<Header> fields;
  for_each_column(RunResult{}, [&](const std::string& object, std::string_view name, const char* suffix,
                                   const char* sql_type, bool always, const auto*) {
    const bool any = !results.runs.empty() && results.has_column[fields.size()];
    shown_.push_back(always || any);
    fields.push_back({object + std::string(name) + suffix, sql_type});
  });
  if (!results.runs.empty())
    for (const auto& [path, value] : results.runs.front().point) {
      const bool taken =
          std::any_of(fields.begin(), fields.end(), [&](const Header& f) { return f.name == path; });
      header_.push_back({taken ? "point." + path : path, "NUMERIC"});
    }
  for (std::size_t c = 0; c < fields.size(); ++c)
    if (shown_[c]) header_.push_back(std::move(fields[c]));
  header_.push_back({"scaling_efficiency", "REAL"});
}

std::vector<RunTable::Cell> RunTable::row(const RunResult& run, std::size_t index) const {
  std::vector<Cell> cells;
  cells.reserve(header_.size());
  for (const auto& [path, value] : run.point)
    cells.emplace_back(value.kind == YamlNode::Kind::scalar ? value.scalar : to_flow(value));
  for_each_column(run, [&, column = std::size_t{0}](const std::string&, std::string_view, const char*,
                                                    const char*, bool, const auto* value) mutable {
    if (!shown_[column++]) return;
    if (value)
      cells.emplace_back(*value);
    else
      cells.emplace_back();
  });
  cells.push_back(efficiency_.empty() ? Cell{} : efficiency_[index]);
  return cells;
}

std::vector<RunTable::Cell> RunTable::values(const RunResult& run, std::size_t index) const {
  std::vector<Cell> cells = row(run, index);
  for (std::size_t c = 0; c < run.point.size(); ++c) cells[c] = typed(run.point[c].second);
  return cells;
}

void note_columns(const RunResult& run, std::vector<bool>& has) {
  const bool first = has.empty();
  for_each_column(run, [&, column = std::size_t{0}](const std::string&, std::string_view, const char*,
                                                    const char*, bool, const auto* value) mutable {
    if (first) has.push_back(value != nullptr);
    if (value) has[column] = true;
    ++column;
  });
}

std::string csv_text(const RunTable::Cell& cell) {
  switch (cell.index()) {
    case 1:
      return std::get<std::string>(cell);
    case 2:
      return shortest(std::get<double>(cell));
    case 3:
      return std::to_string(std::get<std::int64_t>(cell));
    case 4:
      return std::get<bool>(cell) ? "true" : "false";
    default:
      return "";
  }
}

}  // namespace convoy::results
