// SPDX-License-Identifier: MIT
#include "python/table.h"

#include <pybind11/stl.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "python/arrow_stream.h"

namespace py = pybind11;

namespace convoy::bindings {
namespace {

void set_bit(std::vector<std::uint8_t>& bits, std::size_t row, bool value) {
  bits.resize(row / 8 + 1);
  if (value) bits[row / 8] = static_cast<std::uint8_t>(bits[row / 8] | (1U << (row % 8)));
}

bool bit(const std::vector<std::uint8_t>& bits, std::size_t row) { return (bits[row / 8] >> (row % 8)) & 1U; }

/// What the coordinates of a sweep's axis are: their kind if all have the same, whole numbers if all are that.
Column::Kind kind_of_coordinates(const std::vector<std::vector<RunTable::Cell>>& rows, std::size_t c) {
  constexpr double exact = 9007199254740992;  // 2^53
  bool truths = true, numbers = true, wholes = true;
  for (const std::vector<RunTable::Cell>& row : rows) {
    truths = truths && std::holds_alternative<bool>(row[c]);
    const double* number = std::get_if<double>(&row[c]);
    numbers = numbers && number;
    wholes = wholes && number && *number == std::floor(*number) && std::abs(*number) < exact;
  }
  if (truths) return Column::Kind::truth;
  if (wholes) return Column::Kind::whole;
  return numbers ? Column::Kind::number : Column::Kind::text;
}

Column::Kind kind_of_field(const std::string& sql_type) {
  if (sql_type == "REAL") return Column::Kind::number;
  if (sql_type == "INTEGER") return Column::Kind::whole;
  return sql_type == "BOOLEAN" ? Column::Kind::truth : Column::Kind::text;
}

py::object python_value(const RunTable::Cell& value) {
  return std::visit(
      [](const auto& each) -> py::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::monostate>)
          return py::none();
        else
          return py::cast(each);
      },
      value);
}

const Column& column_named(const Table& table, const std::string& name) {
  for (const Column& column : table.columns())
    if (column.name == name) return column;
  throw py::key_error(name);
}

py::list values_of(const Table& table, const std::string& name) {
  const Column& column = column_named(table, name);
  py::list values(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) values[row] = python_value(column.at(row));
  return values;
}

/// A column of numbers as Python's buffer, for numpy.asarray; it keeps the table.
struct NumberBuffer {
  std::shared_ptr<const Table> table;
  const Column* column;
};

/// Nothing for a column that NumPy cannot look at where it is: of texts, truths (bits), and whole numbers with
/// gaps.
std::optional<NumberBuffer> buffer_of(const std::shared_ptr<const Table>& table, const std::string& name) {
  const Column& column = column_named(*table, name);
  const bool is_array =
      column.kind == Column::Kind::number || (column.kind == Column::Kind::whole && column.nulls == 0);
  if (!is_array) return std::nullopt;
  return NumberBuffer{table, &column};
}

py::buffer_info describe(NumberBuffer& buffer) {
  const auto rows = static_cast<py::ssize_t>(buffer.table->rows());
  return buffer.column->kind == Column::Kind::number
             ? py::buffer_info(const_cast<double*>(buffer.column->numbers.data()), rows, true)
             : py::buffer_info(const_cast<std::int64_t*>(buffer.column->wholes.data()), rows, true);
}

}  // namespace

void Column::add(std::size_t row, const RunTable::Cell& value) {
  const bool there = !std::holds_alternative<std::monostate>(value);
  if (!there) ++nulls;
  set_bit(valid, row, there);
  switch (kind) {
    case Kind::number:
      numbers.push_back(there ? std::get<double>(value) : std::numeric_limits<double>::quiet_NaN());
      return;
    case Kind::whole:
      wholes.push_back(there ? std::get<std::int64_t>(value) : 0);
      return;
    case Kind::truth:
      set_bit(truths, row, there && std::get<bool>(value));
      return;
    case Kind::text:
      if (there) texts += std::get<std::string>(value);
      text_ends.push_back(static_cast<std::int64_t>(texts.size()));
      return;
  }
}

RunTable::Cell Column::at(std::size_t row) const {
  if (!bit(valid, row)) return {};
  if (kind == Kind::number) return numbers[row];
  if (kind == Kind::whole) return wholes[row];
  if (kind == Kind::truth) return bit(truths, row);
  return texts.substr(static_cast<std::size_t>(text_ends[row]),
                      static_cast<std::size_t>(text_ends[row + 1] - text_ends[row]));
}

const void* Column::values() const {
  if (kind == Kind::number) return numbers.data();
  if (kind == Kind::whole) return wholes.data();
  if (kind == Kind::truth) return truths.data();
  return text_ends.data();
}

const char* Column::format() const {
  if (kind == Kind::number) return "g";
  if (kind == Kind::whole) return "l";
  return kind == Kind::truth ? "b" : "U";
}

void Table::add_row(const std::vector<RunTable::Cell>& values) {
  for (std::size_t c = 0; c < columns_.size(); ++c) columns_[c].add(rows_, values[c]);
  ++rows_;
}

std::shared_ptr<const Table> table_of(const Results& results) {
  const RunTable runs(results);
  std::vector<std::vector<RunTable::Cell>> rows;
  for (std::size_t run = 0; run < results.runs.size(); ++run)
    rows.push_back(runs.values(results.runs[run], run));
  std::vector<Column> columns;
  for (const RunTable::Header& header : runs.header()) {
    const std::size_t c = columns.size();
    const bool is_coordinate = header.sql_type == std::string_view("NUMERIC");
    columns.push_back(
        {header.name, is_coordinate ? kind_of_coordinates(rows, c) : kind_of_field(header.sql_type)});
    if (!is_coordinate) continue;
    for (std::size_t run = 0; run < rows.size(); ++run) {
      const YamlNode& given = results.runs[run].point[c].second;
      if (columns[c].kind == Column::Kind::whole)
        rows[run][c] = static_cast<std::int64_t>(std::get<double>(rows[run][c]));
      else if (columns[c].kind == Column::Kind::text)
        rows[run][c] = given.kind == YamlNode::Kind::scalar ? given.scalar : to_flow(given);
    }
  }
  const auto table = std::make_shared<Table>(std::move(columns));
  for (const std::vector<RunTable::Cell>& row : rows) table->add_row(row);
  return table;
}

void add_tables(py::module_& module) {
  py::class_<NumberBuffer>(module, "NumberBuffer", py::buffer_protocol()).def_buffer(&describe);
  py::class_<Table, std::shared_ptr<Table>>(module, "Table")
      .def("__len__", &Table::rows)
      .def("names",
           [](const Table& table) {
             std::vector<std::string> names;
             for (const Column& column : table.columns()) names.push_back(column.name);
             return names;
           })
      .def("values", &values_of)
      .def("buffer", [](const std::shared_ptr<Table>& table,
                        const std::string& name) { return buffer_of(table, name); })
      .def("arrow_schema", [](const std::shared_ptr<Table>& table) { return schema_capsule(table); })
      .def("arrow_stream", [](const std::shared_ptr<Table>& table) { return stream_capsule(table); });
}

}  // namespace convoy::bindings
