// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/store/database.h"

namespace convoy::inline runs {

/// A table of texts whose first column is the key of the row, and whose last one, "digest", is a digest of
/// the table's name and of the other columns: this reveals damaged rows.
class CheckedRows {
 public:
  /// @param columns number of columns before the digest
  CheckedRows(Database& database, const char* table, int columns);

  /// The columns of the row without the digest; nothing if there is no sound row.
  std::optional<std::vector<std::string>> find(const std::string& key);
  /// Whether `find` met a damaged row with this key, and none has replaced it since.
  bool is_damaged(const std::string& key) const { return damaged_.contains(key); }
  void put(const std::vector<std::string_view>& columns);
  void drop(const std::string& key);
  /// Takes over the sound rows of the same table elsewhere whose keys have no row here.
  /// @returns how many rows there are damaged
  std::size_t add(CheckedRows& other);
  /// The same from a database whose pages may be damaged: row by row, so that a row that cannot be reached
  /// does not cost others.
  void salvage(CheckedRows& other);

  /// Of the row that find() found last.
  const std::string& found_digest() const { return found_digest_; }

 private:
  bool is_sound(const Statement& row) const;  ///< the row at which it stands
  void take_over(const Statement& row);

  Database& database_;
  const char* table_;
  int columns_;
  std::optional<Statement> find_, put_;  ///< prepared when needed: tables are created later
  std::set<std::string> damaged_;
  std::string found_digest_;
};

}  // namespace convoy::runs
