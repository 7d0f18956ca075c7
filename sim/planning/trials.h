// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/candidates.h"
#include "sim/run/search/try_out.h"
#include "sim/run/simulate.h"
#include "sim/run/what_if.h"
#include "sim/search/best_first.h"
#include "sim/search/trial_state.h"

namespace convoy::inline planning {

/// What is known of a setup's training step. It grows: first bounds, then a plan, then a simulation.
struct Trial {
  TrialState state = TrialState::open;
  bool planned = false;             ///< a plan was made, though it may not fit
  double step_s = 0, energy_j = 0;  ///< of a step: of a simulated one exactly, else no simulation gives less
  double input_step_s = 0;  ///< of step_s, what the hosts need for the images of a step, to the last digits
  double bound_step_s = 0, bound_energy_j = 0;  ///< of the plan, where simulated
  double peak_memory_bytes = 0;                 ///< of the fullest device, from the plan on
  bool in_full = false;                         ///< Trials::simulate_in_full; the next four are known then
  double step_low = 1, step_high = 1;           ///< the interval of step_s, as factors of it
  bool own_interval = false;  ///< it is that of the run; else that of any run (step_interval)
  std::string label;          ///< of the strategy, with the algorithms that it chose
  std::string bottleneck;     ///< a sentence, where simulated
  std::string message;        ///< why it cannot run, or what failed
};

/// One step on one device, alone: the cost table that all setups with that server, precision and batch share.
struct SoloStep {
  std::int64_t batch = 0;
  double step_s = 0, update_s = 0;  ///< no step is shorter; what the update alone takes
  double device_energy_j = 0, host_power_w = 0;
  double peak_memory_bytes = 0;
  bool fits = false;
};

/// The steps of a server with one precision.
struct SoloSteps {
  std::vector<SoloStep> steps;  ///< by batch
  std::string message;          ///< why there are none
};

/// Processes for the trials of one object, which no copy shares, since they know its machines as they are.
struct OwnTryOut {
  OwnTryOut() = default;
  OwnTryOut(const OwnTryOut&) {}
  OwnTryOut& operator=(const OwnTryOut&) {
    of.reset();
    return *this;
  }
  std::unique_ptr<TryOut> of;  ///< nothing before the first is needed
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
  /// No step in which all devices compute their batches is shorter: what the slowest host needs to make these
  /// ready. Hosts that do not say their `vcpus` have no limit.
  double waited_for_s(const Setup& setup, const InputSpec& input) const;

  void plan(const std::vector<std::size_t>& setups);
  /// Simulates planned setups. Their trials show it when the records are called.
  std::vector<SearchSpace::Record> simulate(const std::vector<std::size_t>& setups);
  /// Finds out the intervals and labels of setups that were simulated, which takes several times as long as their
  /// steps did: for those that are shown, or compared by their intervals. What is known already is not simulated again.
  /// @throws OutOfResources: a process ended before it had an interval
  void simulate_in_full(std::vector<std::size_t> setups);
  std::size_t jobs() const { return jobs_; }

  /// The same space on machines that are changed; bounds of their own, nothing simulated yet.
  Trials with(const WhatIf& change) const;

 private:
  using SoloKey = std::pair<std::string, Precision>;

  void read_servers();
  void fill_cost_table();
  void bound(std::size_t setup);
  const SoloStep* solo_step(const std::string& server, const Setup& setup) const;
  TryOut& try_out();
  void record(std::size_t setup, Tried<RunOutput>& tried);
  std::vector<std::int64_t> batches_of(const std::string& server, Precision precision) const;

  PlanSpec spec_;
  std::size_t jobs_;
  Progress progress_;
  std::size_t planned_ = 0, simulated_ = 0;  ///< setups, for the progress
  WhatIf change_;
  Preparer preparer_;
  ServerTable servers_;
  std::map<SoloKey, SoloSteps> solo_;
  CandidateSpace space_;
  std::vector<Trial> trials_;
  OwnTryOut try_out_;
};

/// Batches are tried up to this many images a device where the plan names none.
inline constexpr std::int64_t largest_tried_batch = 4096;

}  // namespace convoy::planning
