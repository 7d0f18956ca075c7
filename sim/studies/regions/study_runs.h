// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/run/sweep.h"
#include "sim/studies/claims/record.h"
#include "sim/studies/regions/study_points.h"

namespace convoy::inline studies {

/// What the variants of a study come to at one point.
struct StudyOutcome {
  bool possible = false;
  std::string why_not;         ///< where it is not possible
  std::vector<double> values;  ///< of the claims; empty where it is not possible
  bool holds(const StudySpec& spec, std::size_t claim) const {
    return possible && spec.claims[claim].holds(values[claim]);
  }
  bool all_hold(const StudySpec& spec) const;
};

struct StudyOptions {
  SweepOptions sweep{};
  std::string file;                   ///< of the experiment and
  std::vector<std::string> settings;  ///< what was set in it, for the manifest
  std::string store_options;          ///< make_subject(); "" for a store that is used once
  /// Called with a store that was empty, or has another study's points, before anything is computed.
  std::function<void(StoreSubject)> begin{};
};

/// What is set in the experiment for a variant at a point: inputs, then settings of the study and of the
/// variant. @throws InputError: a setting names no input
Experiment::Coordinates coordinates_of(const StudySpec& spec, const StudyPoint& point,
                                       const StudyVariant& variant);

/// Reads the parts of every variant at the middle point and plans them, and simulates none. What a person is
/// told about the study. @throws InputError
std::string check_study(const Experiment& experiment, const StudySpec& spec, std::size_t jobs);

/// Simulates a study's points as sweeps over its experiment, each different one once. Points that the store
/// has are taken from it.
class StudyRuns {
 public:
  /// @throws InputError
  StudyRuns(const Experiment& experiment, const StudySpec& spec, Store& store, StudyOptions options);
  /// Computes what is not known of these points. @returns false: stopped before the end
  /// @throws InputError: an expression is wrong, or a part of a point cannot be read; OutOfResources: a point
  /// needs more than this machine gives it, which says nothing about what is possible
  bool compute(const std::vector<StudyPoint>& points);
  /// @pre compute() was called with it
  const StudyOutcome& at(const StudyPoint& point) const;
  std::size_t simulated() const { return records_.size(); }  ///< different experiments

  /// Makes all points the subject of the store.
  void keep_subject();

 private:
  std::string identity(const StudyPoint& point) const;
  bool simulate_new(const std::vector<Experiment::Coordinates>& points);
  void add_shares(std::vector<Record>& records, const std::vector<std::string>& identities);
  StudyOutcome outcome(const StudyPoint& point) const;
  std::optional<double> evaluated(const StudyExpression& expression, const StudyPoint& point,
                                  const std::vector<const Record*>& records) const;

  /// The outcome of an experiment: its figures, or why there are none.
  struct Ran {
    Record record;
    std::string failure;
  };
  const Experiment& experiment_;
  const StudySpec& spec_;
  Store& store_;
  StudyOptions options_;
  Experiment current_;  ///< at the points that are being computed
  Preparer preparer_{current_};
  std::vector<Experiment::Coordinates> all_;
  std::map<std::string, Ran> records_;         ///< by text of the coordinates
  std::map<std::string, StudyOutcome> known_;  ///< by identity
  bool begun_ = false, wants_shares_ = false;
};

}  // namespace convoy::studies
