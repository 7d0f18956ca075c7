// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/store/database.h"

namespace convoy::inline runs {

enum class ColumnKind : std::uint8_t { bytes, text };

/// A table whose first column is the key of the row, and whose last one, "digest", is a digest of the table's name
/// and of the other columns: this reveals damaged rows.
class CheckedRows {
 public:
  /// @param columns those before the digest
  CheckedRows(Database& database, const char* table, std::vector<ColumnKind> columns);

  /// The columns of the row without the digest; nothing if there is no sound row.
  std::optional<std::vector<std::string>> find(std::string_view key);
  /// Whether a row with this key was found to be damaged, and none has replaced it since.
  bool is_damaged(std::string_view key) const { return damaged_.contains(key); }
  /// Notes that a row, which is sound, refers to something that is not.
  void note_damaged(std::string_view key) { damaged_.emplace(key); }
  void put(const std::vector<std::string_view>& columns);
  void drop(std::string_view key);
  /// Takes over the sound rows of the same table elsewhere whose keys have no row here.
  /// @returns how many rows there are damaged
  std::size_t add(CheckedRows& other);
  /// The same from a database whose pages may be damaged.
  void salvage(CheckedRows& other);

  /// Of the row that find() found last.
  const std::string& found_digest() const { return found_digest_; }

 private:
  bool is_sound(const Statement& row) const;  ///< the row at which it stands
  void take_over(const Statement& row);

  Database& database_;
  const char* table_;
  std::vector<ColumnKind> columns_;
  std::optional<Statement> find_, put_;  ///< prepared when needed: tables are created later
  std::set<std::string, std::less<>> damaged_;
  std::string found_digest_;
};

}  // namespace convoy::runs
