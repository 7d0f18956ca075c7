// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/store/database.h"

namespace convoy::inline runs {

/// A table of texts whose first column is the row's key and whose last, "digest", is a digest of the table's
/// name and of the others: a row that was damaged is told from what was written.
class CheckedRows {
 public:
  /// @param columns how many there are before the digest
  CheckedRows(Database& database, const char* table, int columns);

  /// The row's columns without the digest; nothing where there is no sound one.
  std::optional<std::vector<std::string>> find(const std::string& key);
  /// Whether `find` met a row with this key that is damaged, and none has been put in its place since.
  bool is_damaged(const std::string& key) const { return damaged_.contains(key); }
  void put(const std::vector<std::string_view>& columns);
  void drop(const std::string& key);
  /// Takes over the sound rows of the same table elsewhere whose keys have none here.
  /// @returns how many rows there are damaged
  std::size_t add(CheckedRows& other);
  /// The same from a database whose pages may be damaged: row by row, so that one that cannot be reached
  /// costs no other.
  void salvage(CheckedRows& other);

 private:
  bool is_sound(const Statement& row) const;  ///< the row that it stands at
  void take_over(const Statement& row);

  Database& database_;
  const char* table_;
  int columns_;
  std::optional<Statement> find_, put_;  ///< prepared when they are needed: tables are made later than this
  std::set<std::string> damaged_;
};

}  // namespace convoy::runs
