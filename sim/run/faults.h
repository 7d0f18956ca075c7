// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace convoy::inline runs {

/// What interrupts a training run: events of a Poisson process, each of which takes some hosts away.
struct Faults {
  double per_host_s = 0;    ///< hosts lost per second, per host
  double lost_at_once = 1;  ///< hosts that an event takes, on average; >= 1

  /// Events per second in a run on this many hosts; one event takes at most all of them.
  double events_per_s(double hosts) const;
};

/// How training resumes.
struct Recovery {
  double checkpoint_s = 0;        ///< time to write a checkpoint, during which training stands still
  std::optional<double> every_s;  ///< training between two checkpoints; nothing: the best by Daly's formula
  double wait_s = 0;              ///< until lost hosts are replaced; no event counts during this time
  double restart_s = 0;  ///< from then until training continues: processes, framework, reading the checkpoint
  bool operator==(const Recovery&) const = default;
};

/// The time and cost of a run.
struct RunEstimate {
  double time_s = 0;  ///< wall time, expected
  double events = 0;  ///< expected number
  double paid_host_s =
      0;  ///< host seconds to pay, expected: hosts that are lost are not paid while they are away
};

/// Training time between two checkpoints that loses the least time, to first order: sqrt(2 d M), with d
/// seconds per checkpoint and M seconds between events. J. W. Young: A first order approximation to the
/// optimum checkpoint interval, CACM 17(9), 1974. Infinite if nothing happens.
double young_interval_s(double checkpoint_s, double mean_between_events_s);

/// The same to higher order: sqrt(2 d M) (1 + sqrt(d / (2 M)) / 3 + d / (18 M)) - d for d < 2 M, otherwise M.
/// J. T. Daly: A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22(3),
/// 2006, eq. 37.
double daly_interval_s(double checkpoint_s, double mean_between_events_s);

/// Training time between two checkpoints in a run: as given, or Daly's; at most all of the work.
double checkpoint_interval_s(const Faults& faults, const Recovery& recovery, double hosts, double work_s);

/// Expected time of `work_s` seconds of training on `hosts` hosts if all wait for the hosts that are lost.
/// The work is cut into pieces of checkpoint_interval_s (the last piece has the rest), each followed by a
/// checkpoint (the last one by that of the result). An event loses what was done since the last checkpoint,
/// whether it happens in a piece, its checkpoint or the restart. A piece of length w with its checkpoint
/// takes on average
///   e^(r R) (1/r + D) (e^(r (w + d)) - 1),   r events a second, d checkpoint_s, D wait_s, R restart_s
/// (Herault, Robert: Fault-Tolerance Techniques for High-Performance Computing, 2015, section 1.2.1), with r
/// (e^(r R) (e^(r (w + d)) - 1)) / r events. Exact for this model.
RunEstimate expected_run(const Faults& faults, const Recovery& recovery, double hosts, double work_s);

/// One run of the same model, with events drawn from `seed`.
RunEstimate drawn_run(const Faults& faults, const Recovery& recovery, double hosts, double work_s,
                      std::uint64_t seed);

/// Continuing with the remaining hosts instead of waiting.
struct Elastic {
  double reconfigure_s = 0;  ///< pause when hosts are lost, and again when they come back
  double wait_s = 0;         ///< until a lost host is replaced
};

/// Expected time with elastic continuation, in the limit of long runs. A host is there for the share a = 1 /
/// (1 + r_h D) of the time (alternating renewal: 1 / r_h up, D away), training continues at that share of its
/// speed (the share of one host is 1 / hosts), and every event brings two pauses: work (1 + 2 P e a) / a,
/// with e events per second when all hosts are there. Only the pauses are lost, since the remaining replicas
/// have the weights.
RunEstimate expected_elastic_run(const Faults& faults, const Elastic& elastic, double hosts, double work_s);

/// One run of the same model with whole hosts: an event takes one host or, with `lost_at_once` above 1, a
/// number of hosts with that mean (its whole part or one more), as far as there are any.
RunEstimate drawn_elastic_run(const Faults& faults, const Elastic& elastic, std::int64_t hosts, double work_s,
                              std::uint64_t seed);

/// The value below which this share of them lies, by linear interpolation. @pre sorted, not empty
double quantile(const std::vector<double>& sorted, double share);

/// The result of repeated runs: the mean, and the ends of an interval that contains `level` of the runs.
struct RunSpread {
  RunEstimate mean;
  double low_s = 0, high_s = 0;            ///< of the time
  double low_host_s = 0, high_host_s = 0;  ///< of the hosts' time to be paid
};

/// `runs` runs with seeds seed, seed + 1, ...: the same on every machine. @pre runs >= 1, 0 < level < 1
RunSpread repeated_runs(const std::function<RunEstimate(std::uint64_t seed)>& run, std::uint64_t seed,
                        int runs, double level = 0.8);

}  // namespace convoy::runs
