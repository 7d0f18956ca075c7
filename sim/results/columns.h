// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/results/result.h"

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

  explicit RunTable(const Results& results);
  const std::vector<Header>& header() const { return header_; }
  std::vector<Cell> row(std::size_t run) const;
  /// The same with coordinates that are written as numbers or truths as such.
  std::vector<Cell> values(std::size_t run) const;

 private:
  const Results& results_;
  std::vector<Header> header_;
  std::vector<bool> shown_;  ///< of the columns of result_fields.h
  std::vector<double> efficiency_;
};

/// As results.csv has it: numbers in the shortest form that reads back to the same double, "" for none.
std::string text_of(const RunTable::Cell& cell);

}  // namespace convoy::results
