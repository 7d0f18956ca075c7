// SPDX-License-Identifier: MIT
#include "sim/run/store/readable_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::inline runs {
namespace {

/// An upper bound of the row numbers: of those that the table reports, and of those for which its file has
/// room.
std::int64_t last_row(Database& database, const char* table) {
  constexpr std::int64_t least_row_bytes = 32;
  const std::int64_t room =
      database.number("PRAGMA page_count") * database.number("PRAGMA page_size") / least_row_bytes;
  try {
    return std::min(room, database.number(fmt::format("SELECT max(rowid) FROM {} NOT INDEXED", table)));
  } catch (const DamagedStore&) {
    return room;
  }
}

}  // namespace

void each_row(Database& database, const char* table, const VisitRow& visit) {
  Statement rows(database, fmt::format("SELECT * FROM {}", table));
  while (rows.step()) visit(rows);
}

void each_readable_row(Database& database, const char* table, const VisitRow& visit) {
  try {
    Statement row(database, fmt::format("SELECT * FROM {} NOT INDEXED WHERE rowid = ?", table));
    const std::int64_t last = last_row(database, table);
    for (std::int64_t number = 1; number <= last; ++number) {
      try {
        if (row.bind(0, number).step()) visit(row);
        row.reset();
      } catch (const DamagedStore&) {  // this row only
      }
    }
  } catch (const DamagedStore&) {  // not even its tables can be read: it has nothing to give
  }
}

}  // namespace convoy::runs
