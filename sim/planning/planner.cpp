// SPDX-License-Identifier: MIT
#include "sim/planning/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "sim/base/ties.h"
#include "sim/search/best_first.h"

namespace convoy::inline planning {
namespace {

/// A question to the candidates of a plan as a space of their setups.
class QuestionSpace : public SearchSpace {
 public:
  /// @param hopes the setups that may still change the answer
  QuestionSpace(Trials& trials, std::function<std::vector<Hope>()> hopes)
      : trials_(trials), hopes_(std::move(hopes)) {}
  std::vector<Hope> hopes() const override { return hopes_(); }
  bool is_planned(std::size_t s) const override { return trials_.trial(s).state == TrialState::planned; }
  void plan(const std::vector<std::size_t>& setups) override { trials_.plan(setups); }
  std::vector<Record> simulate(const std::vector<std::size_t>& setups) override {
    return trials_.simulate(setups);
  }

 private:
  Trials& trials_;
  std::function<std::vector<Hope>()> hopes_;
};

/// Setups of several candidates each, with the least of the candidates' bounds.
class HopesOfSetups {
 public:
  void add(std::size_t setup, const Rank& bound) {
    const auto [hope, is_new] = least_.try_emplace(setup, bound);
    if (!is_new) hope->second = std::min(hope->second, bound);
  }
  std::vector<Hope> all() const {
    std::vector<Hope> hopes;
    for (const auto& [setup, bound] : least_)
      hopes.push_back({{without_last_digits(bound.value), without_last_digits(bound.time_s)}, setup});
    return hopes;
  }

 private:
  /// So that of bounds which are equal but for rounding, the first setup's comes first.
  static double without_last_digits(double figure) {
    constexpr int bits = 40;
    int exponent = 0;
    const double fraction = std::frexp(figure, &exponent);
    return std::ldexp(std::round(std::ldexp(fraction, bits)), exponent - bits);
  }

  std::map<std::size_t, Rank> least_;
};

/// Whatever rules a candidate out of the front at its bound has a smaller time x cost, and comes before it.
Rank front_order(const Standing& bound) {
  const bool priced = std::isfinite(bound.cost_usd);  // of no time either, the product is no number
  return {priced ? bound.time_s * bound.cost_usd : bound.cost_usd, bound.time_s};
}

/// Whether what one candidate needs more than another lies within the 80 % interval of that difference. Machines err
/// for themselves; cost, energy and carbon err as the time does.
bool is_tie(const Planner& planner, std::size_t loser, std::size_t winner, const Scenario& scenario) {
  const Estimates& estimates = planner.estimates();
  const double more = value_of(scenario.objective, estimates.figures(loser, scenario)),
               least = value_of(scenario.objective, estimates.figures(winner, scenario));
  if (!std::isfinite(more)) return false;
  planner.simulate_in_full({loser, winner});
  return within_interval(more, estimates.own_factors(loser, scenario).first, least,
                         estimates.own_factors(winner, scenario).second);
}

bool may_run(TrialState state) {
  return state == TrialState::open || state == TrialState::planned || state == TrialState::simulated;
}

}  // namespace

void Planner::simulate_in_full(const std::vector<std::size_t>& candidates) const {
  std::vector<std::size_t> setups;
  for (const std::size_t c : candidates) setups.push_back(trials_.space().candidates[c].setup);
  trials_.simulate_in_full(std::move(setups));
}

bool Planner::simulated(std::size_t candidate) const {
  return trials_.trial(trials_.space().candidates[candidate].setup).state == TrialState::simulated;
}

bool Planner::keeps(const Figures& figures, const Scenario& scenario) {
  if (!Estimates::broken(figures, scenario).empty()) return false;
  return !scenario.value_below ||
         !ties_with_best(*scenario.value_below, value_of(scenario.value_of, figures));
}

Standing Planner::standing(std::size_t c, const Scenario& scenario, const Figures& figures) const {
  const std::size_t setup = trials_.space().candidates[c].setup;
  return {value_of(scenario.objective, figures),
          figures.time_s,
          figures.cost_usd,
          estimates_.doubtful(c),
          estimates_.hosts(setup),
          trials_.setup(setup).global_batch,
          c};
}

Figures Planner::floor(std::size_t c, const Scenario& scenario) const {
  const Trial& trial = trials_.trial(trials_.space().candidates[c].setup);
  return estimates_.figures(c, scenario, std::max(at_least(trial.step_s), trial.input_step_s),
                            at_least(trial.energy_j));
}

Figures Planner::bound(std::size_t c, const Scenario& scenario) const {
  const Trial& trial = trials_.trial(trials_.space().candidates[c].setup);
  return estimates_.figures(c, scenario, trial.bound_step_s, trial.bound_energy_j);
}

std::vector<std::size_t> Planner::open(const Scenario& scenario) const {
  std::vector<std::size_t> result;
  const CandidateSpace& space = trials_.space();
  for (std::size_t c = 0; c < space.candidates.size(); ++c) {
    if (scenario.undoubted && estimates_.doubtful(c)) continue;
    if (!scenario.without.empty() &&
        scenario.without.contains(kinds_of(trials_.setup(space.candidates[c].setup).order)))
      continue;
    if (estimates_.out(c, scenario).empty()) result.push_back(c);
  }
  return result;
}

void Planner::simulate_all(const Scenario& scenario) {
  std::set<std::size_t> setups;
  for (const std::size_t c : open(scenario))
    if (!simulated(c)) setups.insert(trials_.space().candidates[c].setup);
  trials_.plan({setups.begin(), setups.end()});
  std::erase_if(setups, [&](std::size_t s) { return trials_.trial(s).state != TrialState::planned; });
  for (const SearchSpace::Record& record : trials_.simulate({setups.begin(), setups.end()})) record();
}

/// The standings of simulated candidates that keep the constraints, once no other candidate may change the
/// answer.
/// @param hopes of the standings that are known and those that are bounds, the setups that may change it
std::vector<Standing> Planner::search(
    const Scenario& scenario,
    const std::function<std::vector<Hope>(const std::vector<Standing>& known,
                                          const std::vector<Standing>& bounds)>& hopes) {
  const std::vector<std::size_t> all = open(scenario);
  struct Seen {
    TrialState state = TrialState::failed;
    std::optional<Standing> standing;  ///< nothing: does not keep the constraints
  };
  std::vector<Seen> seen(all.size());
  std::vector<Standing> known, bounds;
  const auto look = [&] {
    known.clear(), bounds.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const TrialState state = trials_.trial(trials_.space().candidates[all[i]].setup).state;
      if (!may_run(state)) continue;
      if (seen[i].state != state) {
        const Figures figures =
            simulated(all[i]) ? estimates_.figures(all[i], scenario) : floor(all[i], scenario);
        seen[i] = {state, std::nullopt};
        if (keeps(figures, scenario)) seen[i].standing = standing(all[i], scenario, figures);
      }
      if (seen[i].standing) (state == TrialState::simulated ? known : bounds).push_back(*seen[i].standing);
    }
    return hopes(known, bounds);
  };
  QuestionSpace space(trials_, look);
  best_first(space, {.at_once = trials_.jobs()});
  return known;
}

std::optional<std::size_t> Planner::best(const Scenario& scenario) {
  const std::optional<std::size_t> first = least(scenario);
  if (!first || scenario.undoubted || !estimates_.doubtful(*first)) return first;
  Scenario sure = scenario;
  sure.undoubted = true;
  const std::optional<std::size_t> other = least(sure);
  return other && is_tie(*this, *other, *first, scenario) ? other : first;
}

std::optional<std::size_t> Planner::least(const Scenario& scenario) {
  return best_of(
      search(scenario, [&](const std::vector<Standing>& known, const std::vector<Standing>& bounds) {
        double least = std::numeric_limits<double>::infinity();
        for (const Standing& each : known) least = std::min(least, each.value);
        const std::optional<Standing> best = best_standing(known);
        HopesOfSetups hopes;
        for (const Standing& each : bounds)
          if (!best || !cannot_lead(each, *best, least)) hopes.add(setup_of(each), {each.value, each.time_s});
        return hopes.all();
      }));
}

std::vector<std::size_t> Planner::front(const Scenario& scenario) {
  std::vector<Standing> known =
      search(scenario, [&](const std::vector<Standing>& so_far, const std::vector<Standing>& bounds) {
        const std::vector<Standing> front = front_of(so_far);
        HopesOfSetups hopes;
        for (const Standing& each : bounds)
          if (!cannot_join(front, each)) hopes.add(setup_of(each), front_order(each));
        return hopes.all();
      });
  std::vector<std::size_t> candidates;
  for (const Standing& each : front_of(std::move(known))) candidates.push_back(each.candidate);
  return candidates;
}

std::map<std::string, std::int64_t> Planner::pruned(const Scenario& scenario) const {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c) {
    if (simulated(c)) continue;
    std::string reason = estimates_.out(c, scenario);
    if (reason.empty()) reason = Estimates::broken(estimates_.figures(c, scenario), scenario);
    ++counts[reason.empty() ? "bound" : reason];
  }
  return counts;
}

std::int64_t Planner::planned_count() const {
  std::int64_t count = 0;
  for (const Candidate& candidate : trials_.space().candidates)
    count += trials_.trial(candidate.setup).planned;
  return count;
}

std::int64_t Planner::simulated_count() const {
  std::int64_t count = 0;
  for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c) count += simulated(c);
  return count;
}

}  // namespace convoy::planning
