// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/run/store/database.h"
#include "sim/run/wire.h"

namespace convoy::inline runs {

/// What a store holds points of.
struct StoreSubject {
  std::string experiment;  ///< its name
  Manifest manifest;
  std::string jobs;                 ///< `jobs:` of the experiment as YAML in one line; "": none
  std::vector<std::string> points;  ///< of each point in the sweep's order: coordinates as YAML in one line
  std::vector<std::string> keys;    ///< and the digest of all that its run depends on
};

/// How a point ended that has no results.
struct PointFailure {
  std::string kind;  ///< "input" | "memory" | "time" | "crash"
  std::string reason;
};

/// Finished points of a sweep: `results.sqlite`, or in memory. A point is known by its content's digest, so
/// that what two sweeps have in common is computed once. Written through a transaction that is committed a
/// few times a second: what has been committed survives the end of this process, however that comes.
class Store {
 public:
  /// In memory.
  Store();
  /// Opens a file, or makes it. @throws OutputError: it is no store, or of another version
  Store(const std::string& file, Database::Mode mode);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool empty() const { return !subject_; }
  const StoreSubject& subject() const { return *subject_; }
  /// Makes the store that of `subject`; the points of the former one stay for who asks for them again.
  void set_subject(StoreSubject subject);

  bool has(const std::string& key, bool with_trace);
  bool has_any();  ///< of any sweep
  void put(const std::string& key, const StoredRun& run);
  void put(const std::string& key, const PointFailure& failure);
  std::optional<StoredRun> run(const std::string& key, bool with_trace);
  std::optional<PointFailure> failure(const std::string& key);
  /// Takes over the points of another store that this one does not have.
  void add_points_of(const std::string& file);
  /// Removes the traces, which only a run with --trace shows.
  void drop_traces();
  /// Table `runs`: a column for each column of results.csv.
  void write_table(const Results& results);
  void commit();
  void commit_old();  ///< what has waited for a while
  const std::string& name() const { return database_.file(); }

 private:
  void make_tables();
  void load_subject();
  void changed();

  Database database_;
  std::optional<StoreSubject> subject_;
  std::optional<Statement> has_, put_run_, put_failure_, get_run_, get_failure_, put_trace_, get_trace_;
  bool in_transaction_ = false;
  std::chrono::steady_clock::time_point begun_{};
};

}  // namespace convoy::runs
