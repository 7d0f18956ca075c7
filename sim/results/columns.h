// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  using Cell = std::optional<std::string>;  ///< nothing: the run has no such value
  using Value = std::variant<std::monostate, double, std::int64_t, bool, std::string>;

  explicit RunTable(const Results& results);
  const std::vector<Header>& header() const { return header_; }
  std::vector<Cell> row(std::size_t run) const;
  std::vector<Value> values(std::size_t run) const;  ///< the same, as numbers and truths where they are

 private:
  const Results& results_;
  std::vector<Header> header_;
  std::vector<bool> shown_;  ///< of the columns of result_fields.h
  std::vector<double> efficiency_;
};

}  // namespace convoy::results
