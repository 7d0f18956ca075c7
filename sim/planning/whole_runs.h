// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace convoy::inline planning {

/// A published run to a target beside what its steps predict, in the same unit: a row of
/// results/published/whole_runs.csv.
struct WholeRun {
  std::string study, team, run;
  double measured = 0, predicted = 0;
  double low = 0, high = 0;  ///< of the 80 % interval of the predicted steps
};

/// The table's rows, in its order. @throws InputError if it is wrong
const std::vector<WholeRun>& whole_runs();

/// What whole runs take beside what their steps predict: log(measured / predicted) of a team that is not among
/// these, as a normal distribution.
struct WholeRunSpread {
  double bias = 0;   ///< its mean: that of the teams' means
  double reach = 0;  ///< four of five lie within so much of it
  /// What four of five of the runs' own predicted steps lie within, the median of them, as log(time). It is a part
  /// of `reach`.
  double step_reach = 0;
  std::size_t teams = 0, runs = 0;

  /// Where four of five whole runs lie, as factors of the predicted time.
  /// @param own the same of the candidate's own: its step and its epochs. What they are wider than those of the
  /// runs comes on top
  std::pair<double, double> around(const std::pair<double, double>& own) const;
};

/// Teams err for themselves, and one team's runs alike. @param without a team whose runs are left out
/// @throws InputError: less than three teams
WholeRunSpread whole_run_spread(const std::vector<WholeRun>& runs, const std::string& without = "");

/// The team of a row of a study: "Dell" of "DellEMC C4140" and "Dell 2xXE8545x4A100-SXM-40GB", "Lambda" of "Lambda, 4
/// GTX 1080 Ti".
std::string team_of(const std::string& run);

}  // namespace convoy::planning
