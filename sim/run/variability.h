// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/keys.h"
#include "sim/results/result.h"
#include "sim/run/faults.h"

namespace convoy::inline runs {

struct PreparedRun;

/// `variability:` of an experiment: what is not the same in every step, and what interrupts training
/// (docs/experiment.md).
struct VariabilitySpec {
  std::int64_t runs = 20;  ///< repetitions
  std::uint64_t seed = 1;
  /// Deviation of what a device takes to compute a step, as a share of it: every device's time in every
  /// repetition is multiplied by a factor of a log-normal distribution of mean 1.
  double jitter = 0;
  /// In every repetition each link whose name matches has, with this chance, so much of its bandwidth: in all
  /// of the step, or from a time in it on.
  struct DegradedLinks {
    std::string pattern;
    double bandwidth = 1, chance = 1;
    std::optional<double> at_s;  ///< from the step's beginning
    SourcePos pos, at_pos;
  };
  std::vector<DegradedLinks> links;
  /// In every repetition a host stands still, with this chance, from a time in the step on: it and its
  /// devices compute and issue nothing, and their messages under way go on.
  struct Stop {
    std::string host;
    double at_s = 0;   ///< from the step's beginning
    double for_s = 0;  ///< > 0
    double chance = 1;
    SourcePos pos;
  };
  std::vector<Stop> stops;
  /// Hosts fail by chance, and some at given times of training.
  struct Failures {
    double per_host_s = 0;
    Recovery recovery;
    struct Given {
      std::string host;
      double at_s = 0;  ///< of the epoch's training
      SourcePos pos;
    };
    std::vector<Given> given;
    SourcePos pos;
  };
  std::optional<Failures> failures;
};

/// @throws InputError
VariabilitySpec read_variability(const YamlNode& node);

/// The keys of `variability:`, for whoever reads about them.
KeySection variability_keys();

/// Makes sure that the run has what the specification names, and steps in which a time means something.
/// @throws InputError
void check_variability(const VariabilitySpec& spec, const PreparedRun& run);

/// Repeats a run's step, and with failures its epoch, and sums up. The step's mean over the repetitions is
/// what an epoch's steps take; with failures each repetition draws an epoch of its own (faults.h).
/// @param result of the undisturbed run. @pre check_variability
VariabilityResult vary(const VariabilitySpec& spec, const PreparedRun& run, const RunResult& result);

}  // namespace convoy::runs
