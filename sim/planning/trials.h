// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/planning/setup_bounds.h"
#include "sim/planning/trial.h"
#include "sim/run/preparer.h"
#include "sim/run/search/try_out.h"
#include "sim/run/simulate.h"
#include "sim/search/best_first.h"

namespace convoy::inline planning {

/// Processes for trials. A copy of the trials starts its own; Trials::with_bandwidth shares them.
struct OwnTryOut {
  OwnTryOut() = default;
  OwnTryOut(const OwnTryOut&) {}
  OwnTryOut(OwnTryOut&&) = default;
  OwnTryOut& operator=(const OwnTryOut&) {
    of.reset();
    return *this;
  }
  OwnTryOut& operator=(OwnTryOut&&) = default;
  std::shared_ptr<TryOut> of;  ///< nothing before the first is needed
};

/// Setups and what trials of them have shown. Simulations run in processes of their own; how many at a time
/// changes nothing but the time they take.
class Trials {
 public:
  using Progress = std::function<void(const std::string& what, std::size_t done, std::size_t all)>;

  /// Fills the cost table and lists the candidates. @throws InputError
  Trials(const PlanSpec& spec, std::size_t jobs, Progress progress);

  const PlanSpec& spec() const { return ground_->spec; }
  const CandidateSpace& space() const { return ground_->space; }
  const ServerTable& servers() const { return ground_->servers; }
  const Setup& setup(std::size_t s) const { return space().setups[s]; }
  const Trial& trial(std::size_t s) const { return own(s); }
  /// Empty before the setup is planned.
  const TrialDetails& details(std::size_t s) const;
  /// Setups that were simulated, in ascending order.
  std::vector<std::size_t> simulated() const;
  /// Why a setup cannot run, or what failed; "" where neither is so.
  std::string message(std::size_t s) const;
  const SetupBounds& bounds() const { return ground_->bounds; }

  void plan(const std::vector<std::size_t>& setups);
  /// Simulates planned setups. Their trials show it when the records are called.
  std::vector<SearchSpace::Record> simulate(const std::vector<std::size_t>& setups);
  /// Finds out the intervals and labels of setups that were simulated, which takes several times as long as their
  /// steps did: for those that are shown, or compared by their intervals. What is known already is not simulated again.
  /// @throws OutOfResources: a process ended before it had an interval
  void simulate_in_full(std::vector<std::size_t> setups);
  std::size_t jobs() const { return jobs_; }

  /// The same space with all links so many times as fast; bounds of their own, nothing simulated yet.
  Trials with_bandwidth(double factor) const;

 private:
  /// What does not depend on the bandwidth of links.
  struct Ground {
    Ground(const PlanSpec& plan, std::size_t jobs, const Progress& progress);
    PlanSpec spec;
    Preparer preparer;  ///< of the processes, which begin with what it knows then
    ServerTable servers;
    SoloTable solos;
    CandidateSpace space;
    SetupBounds bounds;
  };

  Trials(const Trials& others, double bandwidth);
  using Block = std::vector<std::optional<Trial>>;
  static constexpr std::size_t block_size = 64;

  /// Bounded when it is first looked at.
  Trial& own(std::size_t s) const {
    Block& block = trials_[s / block_size];
    if (block.empty()) block.resize(block_size);
    std::optional<Trial>& trial = block[s % block_size];
    if (!trial) trial = ground_->bounds.bound(setup(s), bandwidth_);
    return *trial;
  }
  const std::shared_ptr<TryOut>& try_out() const;
  void record(std::size_t setup, Tried<RunOutput>& tried);

  std::shared_ptr<Ground> ground_;
  std::size_t jobs_;
  Progress progress_;
  std::size_t planned_ = 0, simulated_ = 0;  ///< setups, for the progress
  double bandwidth_ = 1;                     ///< factor on that of all links
  /// By setup, in blocks that are empty until one of them is looked at: on other links few are.
  mutable std::vector<Block> trials_;
  std::map<std::size_t, TrialDetails> details_;  ///< by setup, of those that were planned
  mutable OwnTryOut try_out_;
};

}  // namespace convoy::planning
