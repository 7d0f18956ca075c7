// SPDX-License-Identifier: MIT
#include "sim/run/store/checked_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/digest.h"

namespace convoy::inline runs {
namespace {

/// An upper bound of the row numbers: of those that the table reports, and of those for which its file has
/// room.
std::int64_t last_row(Database& database, const char* table) {
  constexpr std::int64_t least_row_bytes = 64;
  const std::int64_t room =
      database.number("PRAGMA page_count") * database.number("PRAGMA page_size") / least_row_bytes;
  try {
    return std::min(room, database.number(fmt::format("SELECT max(rowid) FROM {} NOT INDEXED", table)));
  } catch (const DamagedStore&) {
    return room;
  }
}

}  // namespace

CheckedRows::CheckedRows(Database& database, const char* table, int columns)
    : database_(database), table_(table), columns_(columns) {}

std::optional<std::vector<std::string>> CheckedRows::find(const std::string& key) {
  if (!find_) find_.emplace(database_, fmt::format("SELECT * FROM {} WHERE key = ?", table_));
  std::optional<std::vector<std::string>> found;
  if (find_->bind(0, key).step()) {
    if (find_->text(0) == key && is_sound(*find_)) {
      found.emplace();
      for (int c = 0; c < columns_; ++c) found->emplace_back(find_->text(c));
      found_digest_ = find_->text(columns_);
    } else {
      damaged_.insert(key);
    }
  }
  find_->reset();
  return found;
}

void CheckedRows::put(const std::vector<std::string_view>& columns) {
  if (!put_) {
    std::string parameters;
    for (int c = 0; c < columns_; ++c) parameters += "?, ";
    put_.emplace(database_, fmt::format("INSERT OR REPLACE INTO {} VALUES({}?)", table_, parameters));
  }
  Sha256 digest;
  digest.add_field(table_);
  for (int c = 0; c < columns_; ++c) {
    const std::string_view column = columns[static_cast<std::size_t>(c)];
    put_->bind(c, column);
    digest.add_field(column);
  }
  put_->bind(columns_, digest.text()).finish();
  damaged_.erase(std::string(columns.front()));
}

void CheckedRows::drop(const std::string& key) {
  Statement(database_, fmt::format("DELETE FROM {} WHERE key = ?", table_)).bind(0, key).finish();
  damaged_.erase(key);
}

std::size_t CheckedRows::add(CheckedRows& other) {
  std::size_t damaged = 0;
  Statement rows(other.database_, fmt::format("SELECT * FROM {}", table_));
  while (rows.step())
    if (is_sound(rows))
      take_over(rows);
    else
      ++damaged;
  return damaged;
}

void CheckedRows::salvage(CheckedRows& other) {
  try {
    Statement row(other.database_, fmt::format("SELECT * FROM {} NOT INDEXED WHERE rowid = ?", table_));
    const std::int64_t last = last_row(other.database_, table_);
    for (std::int64_t number = 1; number <= last; ++number) {
      try {
        if (row.bind(0, number).step() && is_sound(row)) take_over(row);
        row.reset();
      } catch (const DamagedStore&) {  // this row only
      }
    }
  } catch (const DamagedStore&) {  // not even its tables can be read: it has nothing to give
  }
}

bool CheckedRows::is_sound(const Statement& row) const {
  Sha256 digest;
  digest.add_field(table_);
  for (int c = 0; c < columns_; ++c) digest.add_field(row.text(c));
  return digest.text() == row.text(columns_);
}

void CheckedRows::take_over(const Statement& row) {
  if (find(std::string(row.text(0)))) return;
  std::vector<std::string_view> columns;
  for (int c = 0; c < columns_; ++c) columns.push_back(row.text(c));
  put(columns);
}

}  // namespace convoy::runs
