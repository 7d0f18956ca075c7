// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/columns.h"
#include "sim/run/store/checked_rows.h"
#include "sim/run/store/database.h"
#include "sim/run/store/kept_results.h"
#include "sim/run/store/store_subject.h"
#include "sim/run/store/text_compression.h"
#include "sim/run/wire.h"

namespace convoy::inline runs {

/// The outcome of a point that has no results.
struct PointFailure {
  std::string kind;  ///< "input" | "memory" | "time" | "crash"
  std::string reason;
};

/// Finished points of a sweep: `results.sqlite`, or in memory. A point is identified by the digest of its
/// content, so that what two sweeps have in common is computed once. Points are written in a transaction that
/// is committed a few times a second: what has been committed survives the end of this process, however it
/// ends. Equal results are kept once. Every row has a digest of its own, which is checked whenever it is read: a
/// damaged row counts as absent.
class Store {
 public:
  /// In memory.
  Store();
  /// Opens or creates a file, and checks all of its pages. @throws OutputError: it is of another version
  /// @throws DamagedStore: it is not a store, or its pages or sweep cannot be read
  /// @param name the name in errors, if it is not `file`
  Store(const std::string& file, Database::Mode mode, const std::string& name = "");
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool empty() const { return !subject_; }
  const StoreSubject& subject() const { return *subject_; }
  /// Makes this the store of `subject`; the points of the former subject stay available, and listed where they are of
  /// the same sweep. The same subject changes nothing.
  void set_subject(StoreSubject subject);

  bool has(const PointKey& key, bool with_trace) { return run(key, with_trace).has_value(); }
  bool has_any();  ///< of any sweep
  /// Whether the point was found to have a row, for a run, its trace or a failure, that cannot be read.
  bool is_damaged(const PointKey& key) const;
  void drop(const PointKey& key);  ///< everything it has about the point, save a result that others may have
  void put(const PointKey& key, const StoredRun& run);
  void put(const PointKey& key, const PointFailure& failure);
  std::optional<StoredRun> run(const PointKey& key, bool with_trace);
  std::optional<PointFailure> failure(const PointKey& key);
  /// Takes over the sound points of another store that this one does not have.
  /// @returns how many rows of the other are damaged
  std::size_t add_points_of(Store& other);
  /// Takes over what can be read of a damaged store, except its sweep.
  /// @param name the name in errors
  /// @returns how many runs this store then has
  std::int64_t salvage(const std::string& file, const std::string& name);
  /// Removes the traces, which only a run with --trace shows.
  void drop_traces();
  /// What the subject's queue of jobs came to, where that takes more than its runs: kept until the subject is
  /// another one. @pre !empty()
  void keep_queues(const std::string& text);
  std::optional<std::string> queues();
  /// Of the rows of the run or failure that was found last.
  const std::string& digest_of_point() const { return found_digest_; }
  /// Notes the digest of all rows of the subject, by who has read them.
  void note_read(std::string digest) { read_digest_ = std::move(digest); }
  /// Notes that files with this digest were written of what was read. The note goes with the next change of the
  /// store, and does not count where other rows are read.
  void note_written(const std::string& files);
  bool is_written(const std::string& files);  ///< of what was read now
  using AddRow = std::function<void(const std::vector<RunTable::Cell>& row)>;
  /// Table `runs`, with a column for each column of results.csv. @param fill adds its rows in their order
  void write_table(const RunTable& table, const std::function<void(const AddRow& add)>& fill);
  void commit();
  void commit_old();  ///< what has waited for a while
  /// Until it goes, or the store is changed, all that is read is read in one transaction: SQLite then locks the
  /// file once, and not once a row.
  class Reading {
   public:
    explicit Reading(Store& store) : store_(store) { store.begin_reading(); }
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    Store& store_;
  };
  const std::string& name() const { return database_.name(); }

 private:
  void make_tables();
  void check_tables();
  void load_subject();
  void changed();
  void begin_reading();
  void end_reading();

  Database database_;
  std::optional<StoreSubject> subject_;
  std::string subject_digest_, found_digest_, read_digest_;
  KeptResults results_{database_};
  CheckedRows points_{database_, "points", {ColumnKind::bytes, ColumnKind::bytes}},
      failures_{database_, "failures", {ColumnKind::bytes, ColumnKind::text, ColumnKind::text}},
      traces_{database_, "traces", {ColumnKind::bytes, ColumnKind::bytes}};
  TextCompression of_traces_{""};  ///< which may be longer than all results
  bool in_transaction_ = false, is_reading_ = false;
  std::chrono::steady_clock::time_point begun_{};
};

}  // namespace convoy::runs
