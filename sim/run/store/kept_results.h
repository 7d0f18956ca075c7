// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "sim/run/store/database.h"
#include "sim/run/store/text_compression.h"
#include "sim/run/wire.h"

namespace convoy::inline runs {

/// Table `results` of a store: results of runs, equal ones once, each by a digest of its content, which reveals
/// damage. They are compressed with a dictionary, which is the beginning of the first result of the store.
class KeptResults {
 public:
  explicit KeptResults(Database& database) : database_(database) {}

  /// Puts it in place of a damaged one, too. @returns the digest by which it is found. The trace is none of it.
  std::string put(const StoredRun& run);
  /// Nothing: there is no sound one.
  std::optional<StoredRun> find(std::string_view digest);
  /// Takes over the sound results of another store. @returns how many there are damaged
  std::size_t add(KeptResults& other);
  /// The same from a database whose pages may be damaged.
  void salvage(KeptResults& other);

 private:
  /// The row at which it stands, if it is sound.
  std::optional<StoredRun> run_of(const Statement& row);
  TextCompression* compression();  ///< nullptr: the store has no dictionary, or has lost it
  void begin(const StoredRun& first);

  Database& database_;
  std::optional<TextCompression> compression_;  ///< once the dictionary is known
  std::optional<Statement> find_, put_;         ///< prepared when needed: tables are created later
};

}  // namespace convoy::runs
