// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/plan_spec.h"
#include "sim/run/experiment.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline studies {

/// A number that nobody knows exactly, and what a run hangs on it.
struct DoctorInput {
  std::string key, value;        ///< as Doubt::key, Doubt::value
  std::string grade, source;     ///< how it is known
  std::optional<double> spread;  ///< standard deviation of log(number); nothing: no number, as a protocol
  double variance_share = 0;     ///< of the variance of log(step time) that all inputs give together
  std::array<double, 2> step_time_s{};  ///< with the number less and more by quantile_80 spreads
  /// Width of the interval where this is measured, relative to the present one; 1: no key takes it.
  double narrows_to = 1;
  std::string measure;  ///< the cheapest measurement: a command, or lines to paste
};

/// Steps with all numbers of a run drawn from their spreads at once, each step by one replay (drawn_step_s).
struct DrawnSteps {
  std::uint64_t draws = 0, seed = 0;
  std::array<double, 2> step_time_s{};  ///< 10th and 90th percentile
  double inside = 0;                    ///< share of the draws inside the run's interval
};

/// How many draws are asked for; none by default.
struct DrawsAsked {
  std::uint64_t draws = 0, seed = 1;
};

/// What the step of a run hangs on.
struct DoctorRun {
  std::string id;
  std::vector<std::pair<std::string, YamlNode>> point;
  double step_time_s = 0;
  std::optional<IntervalResult> interval;  ///< that of the run; nothing: all is exact
  double spread = 0;                ///< standard deviation of log(step time): that of all inputs together
  std::vector<DoctorInput> inputs;  ///< the largest share first
  std::optional<DrawnSteps> drawn;  ///< where they were asked for and something is open
};

/// Of a plan: how likely it is that another kind of servers is the best.
struct FlipRival {
  std::string servers;
  double chance = 0;  ///< that it beats the choice
};
struct Flip {
  double chance = 0;  ///< that any of them does
  std::vector<FlipRival> rivals;
};

struct Diagnosis {
  std::string experiment;
  std::vector<DoctorRun> runs;  ///< of a plan one, "choice"; none where nothing meets its constraints
  std::optional<Flip> flip;     ///< of a plan
};

using DoctorProgress = std::function<void(std::size_t done, std::size_t all)>;

/// What the steps of an experiment's points hang on, by simulating each point again with each doubtful number
/// less and more (docs/doctor.md).
/// @throws InputError
Diagnosis diagnose(const Experiment& experiment, std::size_t jobs, const DoctorProgress& progress,
                   const DrawsAsked& asked = {});

/// What a plan's choice hangs on.
Diagnosis diagnose_plan(const PlanSpec& spec, std::size_t jobs, const DoctorProgress& progress,
                        const DrawsAsked& asked = {});

/// Of an experiment, or of a plan with a price table of the user's; "": the program's own.
/// @throws InputError: a price table for what is no plan
Diagnosis diagnose_file(const Experiment& experiment, const std::string& prices, std::size_t jobs,
                        const DoctorProgress& progress, const DrawsAsked& asked = {});

/// A run's inputs, its shares adding up to 1 unless nothing is open.
DoctorRun diagnose_run(const PreparedRun& run, const DrawsAsked& asked = {});

/// Chance that the least of independent log-normal values is not the first one. A standard deviation may be 0.
struct UncertainValue {
  double value = 0, spread = 0;  ///< its median, and the standard deviation of its logarithm
};
double chance_of_flip(const UncertainValue& choice, const std::vector<UncertainValue>& rivals);

/// Writes convoy.doctor/1 (docs/doctor.md).
void write_doctor(const Diagnosis& diagnosis, std::ostream& out);
/// JSON Schema of it.
std::string doctor_schema_text();
/// The same for people.
std::string doctor_text(const Diagnosis& diagnosis);
/// The same as a page (html_page).
void write_page(const Diagnosis& diagnosis, std::ostream& out);

}  // namespace convoy::studies
