// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/input_error.h"

namespace convoy::inline base {

struct CsvCell {
  std::string text;
  SourcePos pos;
};
using CsvRow = std::vector<CsvCell>;  ///< one cell per column, at least one

/// A CSV file with a header, read strictly; cells are found by column name. As in RFC 4180, cells may be
/// quoted, and a quote inside a quoted cell is doubled; unlike there, cells do not span lines. Empty lines
/// and lines that begin with `#` are ignored.
class CsvTable {
 public:
  /// @param known the columns that are allowed; empty: any.
  /// @throws InputError: the file cannot be read or is larger than 64 MiB; a column is not one of `known`,
  /// occurs twice, or is missing although `required`; or a row has more or fewer cells than the header.
  CsvTable(const std::string& file, const std::vector<std::string>& known,
           const std::vector<std::string>& required);

  /// The constructor's check of columns, for a file whose columns decide what kind of file it is.
  void expect(const std::vector<std::string>& known, const std::vector<std::string>& required) const;

  const std::vector<CsvRow>& rows() const { return rows_; }
  bool has(std::string_view column) const { return index(column).has_value(); }
  std::vector<std::string> columns() const;
  const SourcePos& header() const { return header_; }

  /// nullptr if the column is missing or the cell is empty.
  const CsvCell* find(const CsvRow& row, std::string_view column) const;
  /// "" in the same cases.
  std::string text(const CsvRow& row, std::string_view column) const;
  /// A number, at least 0. @throws InputError also if there is none
  double number(const CsvRow& row, std::string_view column, bool positive) const;

 private:
  std::optional<std::size_t> index(std::string_view column) const;

  SourcePos header_;
  CsvRow columns_;
  std::vector<CsvRow> rows_;
};

}  // namespace convoy::base
