// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/result.h"
#include "sim/results/run_figures.h"

namespace convoy::inline results {

/// The results of an experiment, however many runs it has: the figures of all of them in memory, and each run whole for
/// whoever asks.
class SweepResults {
 public:
  using ReadRun = std::function<RunResult(const RunFigures& figures)>;

  /// Without runs, which add() adds.
  /// @param read reads a run once more; nothing: all runs are kept whole
  explicit SweepResults(ReadRun read = {}) : read_(std::move(read)) {}
  /// Of runs in memory, which have to outlive it. Implicit: what writes results takes both.
  SweepResults(const Results& results);  // NOLINT(google-explicit-constructor)

  void reserve(std::size_t count);  ///< for so many runs
  void add(RunResult run);
  /// The run with all that it lists.
  std::shared_ptr<const RunResult> whole(std::size_t run) const;
  /// The same with all runs whole in memory. @pre they are kept whole
  Results take() &&;

  std::string experiment;
  Manifest manifest;
  std::vector<ScheduleResult> schedules;  ///< if the experiment has `jobs:`
  std::vector<FailedPoint> failed;
  std::optional<std::int64_t> points;  ///< as in Results
  std::vector<RunFigures> runs;        ///< in the sweep's order
  std::vector<bool> has_column;        ///< by field that results.csv can have: whether a run has a value

 private:
  ReadRun read_;
  std::unique_ptr<FiguresPool> pool_ = std::make_unique<FiguresPool>();  // stays where it is
  std::vector<RunResult> kept_;                                          ///< where all runs are kept whole
  const std::vector<RunResult>* elsewhere_ = nullptr;                    ///< runs in memory that others keep
};

/// Throughput per device of each run, relative to the best among the runs with the fewest devices in its
/// group. A group is the runs whose sweep points differ only in the strategy and in counts of nodes and
/// devices, and whose model and kind of device are the same (docs/results.md). Empty where no group has runs
/// of different device counts.
std::vector<double> scaling_efficiency(const SweepResults& results);

}  // namespace convoy::results
