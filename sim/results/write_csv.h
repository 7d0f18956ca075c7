// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <vector>

#include "sim/results/columns.h"

namespace convoy::inline results {

/// Writes results.csv (RFC 4180, "\n" as line end) with one row per run: first the sweep's coordinates, then
/// the numbers of results.json that belong to the run as a whole. Unknown values are empty.
class CsvWriter {
 public:
  /// Writes the header.
  CsvWriter(const RunTable& table, std::ostream& out);
  void add(const std::vector<RunTable::Cell>& row);

 private:
  std::ostream& out_;
};

/// The whole file.
void write_csv(const SweepResults& results, std::ostream& out);

}  // namespace convoy::results
