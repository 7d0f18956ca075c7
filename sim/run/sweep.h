// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/sweep_results.h"
#include "sim/run/experiment.h"
#include "sim/run/preparer.h"
#include "sim/run/store/store.h"

namespace convoy::inline runs {

/// Every `of`-th point of a sweep, beginning with number `index`, counted from 1.
struct Shard {
  std::size_t index = 1;  ///< from 1 to `of`
  std::size_t of = 1;     ///< shards in all
};

/// How far a sweep has come.
struct SweepProgress {
  std::size_t done = 0;             ///< points computed
  std::size_t all = 0;              ///< points to be computed, without those that were in the store
  std::size_t current = 0;          ///< index of the point that was begun last
  std::size_t candidates_done = 0;  ///< strategies decided, for `auto` at the points begun
  std::size_t candidates = 0;       ///< strategies in all, likewise
};

/// How run_sweep computes an experiment's points.
struct SweepOptions {
  std::size_t jobs = 1;  ///< processes at a time; the outcome does not depend on it
  bool trace = false;    ///< with a trace of each point
  bool explain = false;  ///< with counterfactuals (sim/run/explain.h)
  bool full = false;     ///< devices and links one by one, not by class
  Shard shard{};         ///< which points
  double point_memory_bytes = std::numeric_limits<double>::infinity();  ///< that a point may take
  double point_time_s = std::numeric_limits<double>::infinity();        ///< that a point may take
  /// Called as points are begun and end.
  std::function<void(const SweepProgress&)> progress = [](const SweepProgress&) {};
  /// Called, before anything is simulated, with the points whose stored runs are damaged: they are computed
  /// again.
  std::function<void(const std::vector<std::size_t>& points)> damaged = [](const auto&) {};
  /// Called, before anything is simulated, with what takes long.
  std::function<void(const std::string& warning)> slow = [](const auto&) {};
  /// Called, after everything is simulated, as runs are written into files.
  std::function<void(std::size_t done, std::size_t all)> writing = [](std::size_t, std::size_t) {};
  std::function<bool()> stop = [] { return false; };  ///< asked several times a second
};

/// The subject of a store for the preparer's experiment. Reads the parts of the points. @throws InputError
/// @param file, settings: as the user gave them
/// @param options text of the options that change the result of a run; nothing for a store that is used once
/// @param shard its points are listed
StoreSubject make_subject(Preparer& preparer, const std::string& file,
                          const std::vector<std::string>& settings, const std::optional<std::string>& options,
                          const Shard& shard = {});

/// What is known about a point that was planned and not simulated; nothing for points that search for a
/// strategy.
struct PlannedPoint {
  std::string device;       ///< whose tensors take the largest share of its memory
  double device_bytes = 0;  ///< its memory
  std::array<double, memory_class_count> peak_bytes{};  ///< of its tensors by class, at their peak
  double process_bytes = 0;                             ///< of the fullest process
  std::vector<std::string> warnings;                    ///< those that its run would have
};

/// What is known of the run without simulating it.
PlannedPoint planned_point(const PreparedRun& run);

/// What check_sweep found.
struct SweepCheck {
  std::vector<std::optional<PlannedPoint>> planned;  ///< by point
  std::vector<FailedPoint> failed;                   ///< although the input is right, in the sweep's order
};

/// Reads, checks and plans every point, each in a process as run_sweep does, and simulates none. @throws
/// InputError: the first point's that is wrong.
/// @param point_memory_bytes that a point may take
/// @param stop asked several times a second; true ends the check, which then has what it got
SweepCheck check_sweep(
    const Experiment& experiment, std::size_t jobs, double point_memory_bytes,
    const std::function<bool()>& stop = [] { return false; });

/// What the models of the preparer's experiment were read without, one line each, for those that can be read.
std::vector<std::string> model_warnings(Preparer& preparer);

/// What will take long, told before it begins: points that learn (numerics), by the first of each network that
/// can be prepared.
std::vector<std::string> slow_points(Preparer& preparer);

/// Simulates the points that the store does not have, each in a process, and stores them. Failures are stored
/// too, with their reasons, and are tried again by the next sweep.
/// @pre store.subject() is this experiment's
/// @returns false: stopped before the end
bool run_sweep(Preparer& preparer, const SweepOptions& options, Store& store);

/// Runs of a sweep that are kept whole in memory, where the sweep has no more.
inline constexpr std::size_t most_kept_whole = 1000;

/// What a store has of its sweep: runs and failures, in its order. Of a small sweep all runs are kept whole; those of a
/// larger one are read from the store again by whoever asks for them, and have to be there as long.
/// @param experiment if given, the one that was run: errors then say how to run it again
/// @param most_whole the most points of a sweep whose runs are kept whole
/// @throws DamagedStore: a row of it is damaged
SweepResults load_sweep(Store& store, const Experiment* experiment = nullptr,
                        std::size_t most_whole = most_kept_whole);

/// The same with all runs in memory.
Results load_results(Store& store, const Experiment* experiment = nullptr);

/// The trace of a finished point. @pre it was simulated with one
std::vector<TraceProcess> load_trace(Store& store, std::size_t index);

/// Simulates all points in memory, without a store. @param explain with counterfactuals
/// @throws std::runtime_error that names a point that fails
Results simulate_sweep(const Experiment& experiment, std::size_t jobs, bool explain = false);

/// "point 3 (cluster.nodes: 4)"
std::string point_text(std::size_t index, const std::vector<std::pair<std::string, YamlNode>>& coordinates);

}  // namespace convoy::runs
