// SPDX-License-Identifier: MIT
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/results/columns.h"

namespace convoy::bindings {

/// Values of one name, in the buffers that Arrow wants.
struct Column {
  enum class Kind { number, whole, truth, text };
  std::string name;
  Kind kind = Kind::number;
  std::size_t nulls = 0;
  std::vector<std::uint8_t> valid = {};       ///< a bit a row, the first in the lowest; 0: no value
  std::vector<double> numbers = {};           ///< of Kind::number; NaN where there is no value
  std::vector<std::int64_t> wholes = {};      ///< of Kind::whole
  std::vector<std::uint8_t> truths = {};      ///< of Kind::truth, a bit a row
  std::vector<std::int64_t> text_ends = {0};  ///< of Kind::text: 0, then where the text of each row ends
  std::string texts = {};                     ///< of Kind::text, one after the other

  /// @throws std::bad_variant_access: the value is of another kind
  void add(std::size_t row, const RunTable::Cell& value);
  RunTable::Cell at(std::size_t row) const;  ///< nothing: none
  const void* values() const;                 ///< the buffer of the kind's values
  const char* format() const;                 ///< in Arrow's words
};

/// Columns that Python, NumPy and readers of Arrow look at where they are, without a copy. What looks at them
/// keeps them alive.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row with a value for each column, in their order.
  template <class... Values>
  void add_row(const Values&... values) {
    std::size_t c = 0;
    (columns_[c++].add(rows_, RunTable::Cell(values)), ...);
    ++rows_;
  }
  void add_row(const std::vector<RunTable::Cell>& values);

  std::size_t rows() const { return rows_; }
  const std::vector<Column>& columns() const { return columns_; }

 private:
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

/// The columns of results.csv, with coordinates as numbers where all of them are.
std::shared_ptr<const Table> table_of(const Results& results);

/// Adds the class of tables to the module.
void add_tables(pybind11::module_& module);

}  // namespace convoy::bindings
