// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/commands.h"
#include "sim/results/monitor.h"
#include "sim/results/sweep_results.h"
#include "sim/run/experiment.h"
#include "sim/run/output_folder.h"
#include "sim/run/store/store.h"

namespace convoy::inline cli {

/// A folder of results and its store, or a store in memory only.
class ResultsPlace {
 public:
  /// In memory.
  ResultsPlace();
  /// Locks the folder and opens its store. @throws OutputError
  /// @param fresh forgets what the store has
  ResultsPlace(const std::string& folder, bool fresh);
  /// A folder that was made here, and got nothing, is removed.
  ~ResultsPlace();

  Store& store() { return *store_; }
  const OutputFolder* folder() const { return folder_ ? &*folder_ : nullptr; }

  /// Makes the store that of `subject`. @throws OutputError: the folder holds results of something else
  void begin(StoreSubject subject);

  /// Keeps the folder though its store has no points: a shard of a sweep with fewer points than shards.
  void keep() { written_ = true; }

  /// Writes results.json, results.csv, report.html, the table `runs`, and trace.json where the runs have
  /// traces, and monitor.csv where there are monitors. What was written of the same store, and is still there as
  /// it was written, is not written again.
  /// @param progress called as runs are written
  void write(const SweepResults& results, bool with_trace, const std::vector<RunMonitor>& monitors,
             const std::function<void(std::size_t done, std::size_t all)>& progress);

 private:
  std::optional<OutputFolder> folder_;
  std::unique_ptr<Store> store_;
  bool written_ = false;
  std::vector<std::string> made_;  ///< folders that were not there, from the inside
};

/// "runs/NAME", and for settings a folder in it: "runs/NAME/cluster.nodes=4".
std::string default_folder(const std::string& experiment, const std::vector<std::string>& settings);

/// "o/results.sqlite: what it has of points 3, 17 is damaged and computed again"
std::string damaged_points(const std::string& store, const std::vector<std::size_t>& points);

/// What who only reads a folder's store says of its damage: how to see and how to mend it.
OutputError refused(const std::string& folder, const DamagedStore& damage);

/// Results of a store (load_sweep), with the schedules of its `jobs:` once all runs are there. @throws InputError
SweepResults results_of(Store& store, const Experiment* experiment = nullptr,
                        std::size_t most_whole = most_kept_whole);

/// The same for those who only read the folder: a damaged store is refused.
SweepResults results_or_refuse(const std::string& folder, Store& store);

/// Names the first points that failed, on standard error; what the program ends with because of them.
Exit tell_failures(const SweepResults& results);

}  // namespace convoy::cli
