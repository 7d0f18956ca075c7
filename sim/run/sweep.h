// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/run/experiment.h"
#include "sim/run/simulate.h"

namespace convoy {

struct SweepOptions {
  std::size_t jobs = 1;  ///< processes at a time; the outcome does not depend on it
  bool trace = false;
  bool explain = false;  ///< with counterfactuals (sim/run/explain.h)
  std::function<void(std::size_t done, std::size_t all)> progress = [](std::size_t, std::size_t) {};
};

struct SweepOutcome {
  std::vector<RunOutput> runs;        ///< in the sweep's order, without those that failed
  std::vector<std::string> failures;  ///< "point 3 (cluster.nodes: 4): what happened", in the sweep's order
};

/// Reads, checks and plans every point, simulates none. Returns what failed though the input is right, as in
/// SweepOutcome. @throws InputError: the first point's that is wrong.
std::vector<std::string> check_sweep(const Experiment& experiment, std::size_t jobs);

/// What its models were read without, a line each. @pre check_sweep has passed.
std::vector<std::string> model_warnings(const Experiment& experiment);

/// Simulates every point after check_sweep has passed all of them. A single point runs in this process.
SweepOutcome run_sweep(const Experiment& experiment, const SweepOptions& options);

}  // namespace convoy
