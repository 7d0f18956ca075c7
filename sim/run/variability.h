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

/// `variability:` of an experiment: what differs from step to step, and what interrupts training
/// (docs/experiment.md).
struct VariabilitySpec {
  std::int64_t runs = 20;  ///< repetitions
  std::uint64_t seed = 1;
  /// Standard deviation of a device's compute time for a step, as a share: in every repetition, the times of
  /// each device are multiplied by a factor from a log-normal distribution with mean 1.
  double jitter = 0;
  /// In every repetition, each link with a matching name has, with this chance, only this share of its
  /// bandwidth: during the whole step, or from a time in it on.
  struct DegradedLinks {
    std::string pattern;
    double bandwidth = 1, chance = 1;
    std::optional<double> at_s;  ///< from the step's beginning
    SourcePos pos, at_pos;
    bool operator==(const DegradedLinks&) const = default;
  };
  std::vector<DegradedLinks> links;
  /// In every repetition a host stands still, with this chance, from a time in the step on: it and its
  /// devices compute and issue nothing, while their messages under way continue.
  struct Stop {
    std::string host;
    double at_s = 0;   ///< from the step's beginning
    double for_s = 0;  ///< > 0
    double chance = 1;
    SourcePos pos;
    bool operator==(const Stop&) const = default;
  };
  std::vector<Stop> stops;
  /// Hosts fail at random, and some at given times of training.
  struct Failures {
    double per_host_s = 0;
    Recovery recovery;
    struct Given {
      std::string host;
      double at_s = 0;  ///< of the epoch's training
      SourcePos pos;
      bool operator==(const Given&) const = default;
    };
    std::vector<Given> given;
    SourcePos pos;
    bool operator==(const Failures&) const = default;
  };
  std::optional<Failures> failures;
  bool operator==(const VariabilitySpec&) const = default;
};

/// @throws InputError
VariabilitySpec read_variability(const YamlNode& node);

/// The keys of `variability:`, for documentation.
KeySection variability_keys();

/// Checks that the run has what the specification names, and steps in which a time is meaningful.
/// @throws InputError
void check_variability(const VariabilitySpec& spec, const PreparedRun& run);

/// Repeats a run's step, and with failures its epoch, and summarises the results. The steps of an epoch take
/// the mean over the repetitions; with failures, each repetition draws an epoch of its own (faults.h).
/// @param result that of the undisturbed run. @pre check_variability
VariabilityResult vary(const VariabilitySpec& spec, const PreparedRun& run, const RunResult& result);

}  // namespace convoy::runs
