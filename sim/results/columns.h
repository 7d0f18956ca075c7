// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/results/sweep_results.h"

namespace convoy::inline results {

/// The runs of results as a table with one row per run: the sweep's coordinates, the fields of
/// result_fields.h that are single values (members of single objects as "object_name"), and the scaling
/// efficiency. results.csv and results.sqlite have these columns. A value that only some runs have is a
/// column if any run has it.
class RunTable {
 public:
  struct Header {
    std::string name;      ///< no two are equal
    const char* sql_type;  ///< "TEXT" | "REAL" | "INTEGER" | "BOOLEAN" | "NUMERIC"
  };
  /// monostate: the run has no such value.
  using Cell = std::variant<std::monostate, std::string, double, std::int64_t, bool>;

  explicit RunTable(const SweepResults& results);
  const std::vector<Header>& header() const { return header_; }
  /// @param run that of the results with this index, whole
  std::vector<Cell> row(const RunResult& run, std::size_t index) const;
  /// The same with coordinates that are written as numbers or truths as such.
  std::vector<Cell> values(const RunResult& run, std::size_t index) const;

 private:
  std::vector<Header> header_;
  std::vector<bool> shown_;  ///< of the fields that can be columns
  std::vector<double> efficiency_;
};

/// Notes which of the fields that can be columns the run has a value for. @param has by field; empty: of no run yet
void note_columns(const RunResult& run, std::vector<bool>& has);

/// As results.csv has it: numbers in the shortest form that reads back to the same double, "" for none.
std::string csv_text(const RunTable::Cell& cell);

}  // namespace convoy::results
