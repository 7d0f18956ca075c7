// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sim/planning/candidates.h"
#include "sim/run/simulate.h"
#include "sim/run/what_if.h"

namespace convoy::inline planning {

/// What is known of a setup's training step. It grows: first bounds, then a plan, then a simulation.
struct Trial {
  enum class State : std::uint8_t { bounded, planned, simulated, too_large, cannot_run, failed };
  State state = State::bounded;
  double step_s = 0, energy_j = 0;  ///< of a step: of a simulated one exactly, else no simulation gives less
  double peak_memory_bytes = 0;     ///< of the fullest device, from the plan on
  double compute_s = 0;             ///< of the critical device, where simulated
  double step_low = 1, step_high = 1;  ///< the interval of step_s, as factors of it
  std::string label;                   ///< of the strategy
  std::string bottleneck;              ///< a sentence, where simulated
  std::string message;                 ///< why it cannot run, or what failed
};

/// One step on one device, alone: the cost table that all setups with that server, precision and batch share.
struct SoloStep {
  double step_s = 0, update_s = 0;  ///< no step is shorter; what the update alone takes
  double device_energy_j = 0, host_power_w = 0;
  double peak_memory_bytes = 0;
  bool fits = false;
  bool runs = false;    ///< the device knows the precision
  std::string message;  ///< why it does not run
};

/// Setups and what trials of them have shown. Simulations run in processes of their own; how many at a time
/// changes nothing but the time they take.
class Trials {
 public:
  using Progress = std::function<void(const std::string& what, std::size_t done, std::size_t all)>;

  /// Fills the cost table and lists the candidates. @throws InputError
  Trials(const PlanSpec& spec, std::size_t jobs, Progress progress);

  const PlanSpec& spec() const { return spec_; }
  const CandidateSpace& space() const { return space_; }
  const ServerTable& servers() const { return servers_; }
  const Setup& setup(std::size_t s) const { return space_.setups[s]; }
  const Trial& trial(std::size_t s) const { return trials_[s]; }

  /// Whether a setup whose step takes at least `step_s` and `energy_j` need not be simulated any more.
  using Hopeless = std::function<bool(std::size_t setup, double step_s, double energy_j)>;
  /// Plans setups, and simulates those that fit and are not hopeless by the bounds of their plans.
  void run(std::span<const std::size_t> setups, const Hopeless& hopeless);

  /// The same space on machines that are changed; bounds of their own, nothing simulated yet.
  Trials with(const WhatIf& change) const;

  static constexpr std::size_t at_a_time =
      16;  ///< setups to hand over at a time; fixed, so that outcomes are

 private:
  using SoloKey = std::tuple<std::string, Precision, std::int64_t>;

  void read_servers();
  void fill_cost_table();
  void bound(std::size_t setup);
  std::vector<std::int64_t> batches_of(const std::string& server, Precision precision) const;

  PlanSpec spec_;
  std::size_t jobs_;
  Progress progress_;
  std::size_t tried_ = 0;  ///< setups that were planned, for the progress
  WhatIf change_;
  Preparer preparer_;
  ServerTable servers_;
  std::map<SoloKey, SoloStep> solo_;
  CandidateSpace space_;
  std::vector<Trial> trials_;
};

/// Batches are tried up to this many images a device where the plan names none.
inline constexpr std::int64_t largest_tried_batch = 4096;

}  // namespace convoy::planning
