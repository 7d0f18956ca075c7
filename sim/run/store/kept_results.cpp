// SPDX-License-Identifier: MIT
#include "sim/run/store/kept_results.h"

#include "sim/base/digest.h"
#include "sim/run/store/readable_rows.h"

namespace convoy::inline runs {
namespace {

/// More would hardly be of use, and of a result of many megabytes each store would have a copy in memory.
constexpr std::size_t most_dictionary_bytes = 1 << 16;

std::string digest_of(const StoredRun& run) {
  std::string bytes = Sha256().add_field(run.network_model).add_field(run.result).bytes();
  bytes.resize(16);  // as many as tell points apart
  return bytes;
}

}  // namespace

std::string KeptResults::put(const StoredRun& run) {
  std::string digest = digest_of(run);
  if (find(digest)) return digest;
  if (!put_) put_.emplace(database_, "INSERT OR REPLACE INTO results VALUES(?, ?, ?)");
  if (compression() == nullptr) begin(run);
  const std::string frame = compression()->compressed(run.result);
  put_->bind_bytes(0, digest).bind(1, run.network_model).bind_bytes(2, frame).finish();
  return digest;
}

std::optional<StoredRun> KeptResults::find(std::string_view digest) {
  if (!find_) find_.emplace(database_, "SELECT * FROM results WHERE digest = ?");
  std::optional<StoredRun> found;
  if (find_->bind_bytes(0, digest).step()) found = run_of(*find_);
  find_->reset();
  return found;
}

std::size_t KeptResults::add(KeptResults& other) {
  std::size_t damaged = 0;
  each_row(other.database_, "results", [&](const Statement& row) {
    if (const std::optional<StoredRun> run = other.run_of(row))
      put(*run);
    else
      ++damaged;
  });
  return damaged;
}

void KeptResults::salvage(KeptResults& other) {
  each_readable_row(other.database_, "results", [&](const Statement& row) {
    if (const std::optional<StoredRun> run = other.run_of(row)) put(*run);
  });
}

std::optional<StoredRun> KeptResults::run_of(const Statement& row) {
  if (compression() == nullptr) return std::nullopt;
  std::optional<std::string> result = compression()->text(row.bytes(2));
  if (!result) return std::nullopt;
  StoredRun run{std::move(*result), std::string(row.bytes(1)), {}};
  return digest_of(run) == row.bytes(0) ? std::optional(std::move(run)) : std::nullopt;
}

TextCompression* KeptResults::compression() {
  if (!compression_) {
    Statement dictionary(database_, "SELECT value FROM about WHERE name = 'dictionary'");
    if (dictionary.step()) compression_.emplace(dictionary.bytes(0));
  }
  return compression_ ? &*compression_ : nullptr;
}

void KeptResults::begin(const StoredRun& first) {
  const std::string_view dictionary = std::string_view(first.result).substr(0, most_dictionary_bytes);
  Statement(database_, "INSERT INTO about VALUES('dictionary', ?)").bind_bytes(0, dictionary).finish();
  compression_.emplace(dictionary);
}

}  // namespace convoy::runs
