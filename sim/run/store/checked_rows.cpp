// SPDX-License-Identifier: MIT
#include "sim/run/store/checked_rows.h"

#include <fmt/format.h>

#include "sim/base/digest.h"
#include "sim/run/store/readable_rows.h"

namespace convoy::inline runs {
namespace {

/// Enough to reveal damage: one of 2^64 damaged rows would be taken for a sound one.
constexpr std::size_t digest_bytes = 8;

std::string digest_of(const char* table, const std::vector<std::string_view>& columns) {
  Sha256 digest;
  digest.add_field(table);
  for (const std::string_view column : columns) digest.add_field(column);
  std::string bytes = digest.bytes();
  bytes.resize(digest_bytes);
  return bytes;
}

std::vector<std::string_view> columns_of(const Statement& row, std::size_t count) {
  std::vector<std::string_view> columns;
  for (std::size_t c = 0; c < count; ++c) columns.push_back(row.bytes(static_cast<int>(c)));
  return columns;
}

}  // namespace

CheckedRows::CheckedRows(Database& database, const char* table, std::vector<ColumnKind> columns)
    : database_(database), table_(table), columns_(std::move(columns)) {}

std::optional<std::vector<std::string>> CheckedRows::find(std::string_view key) {
  if (!find_) find_.emplace(database_, fmt::format("SELECT * FROM {} WHERE key = ?", table_));
  std::optional<std::vector<std::string>> found;
  if (find_->bind_bytes(0, key).step()) {
    if (is_sound(*find_)) {
      const std::vector<std::string_view> columns = columns_of(*find_, columns_.size());
      found.emplace(columns.begin(), columns.end());
      found_digest_ = find_->bytes(static_cast<int>(columns_.size()));
    } else {
      damaged_.emplace(key);
    }
  }
  find_->reset();
  return found;
}

void CheckedRows::put(const std::vector<std::string_view>& columns) {
  if (!put_) {
    std::string parameters;
    for (std::size_t c = 0; c < columns_.size(); ++c) parameters += "?, ";
    put_.emplace(database_, fmt::format("INSERT OR REPLACE INTO {} VALUES({}?)", table_, parameters));
  }
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c] == ColumnKind::text)
      put_->bind(static_cast<int>(c), columns[c]);
    else
      put_->bind_bytes(static_cast<int>(c), columns[c]);
  put_->bind_bytes(static_cast<int>(columns_.size()), digest_of(table_, columns)).finish();
  if (const auto damaged = damaged_.find(columns.front()); damaged != damaged_.end()) damaged_.erase(damaged);
}

void CheckedRows::drop(std::string_view key) {
  Statement(database_, fmt::format("DELETE FROM {} WHERE key = ?", table_)).bind_bytes(0, key).finish();
  if (const auto damaged = damaged_.find(key); damaged != damaged_.end()) damaged_.erase(damaged);
}

std::size_t CheckedRows::add(CheckedRows& other) {
  std::size_t damaged = 0;
  each_row(other.database_, table_, [&](const Statement& row) {
    if (is_sound(row))
      take_over(row);
    else
      ++damaged;
  });
  return damaged;
}

void CheckedRows::salvage(CheckedRows& other) {
  each_readable_row(other.database_, table_, [&](const Statement& row) {
    if (is_sound(row)) take_over(row);
  });
}

bool CheckedRows::is_sound(const Statement& row) const {
  return digest_of(table_, columns_of(row, columns_.size())) == row.bytes(static_cast<int>(columns_.size()));
}

void CheckedRows::take_over(const Statement& row) {
  const std::vector<std::string_view> columns = columns_of(row, columns_.size());
  if (!find(columns.front())) put(columns);
}

}  // namespace convoy::runs
