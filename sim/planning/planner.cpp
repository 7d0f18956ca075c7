// SPDX-License-Identifier: MIT
#include "sim/planning/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/base/ties.h"

namespace convoy::inline planning {
namespace {

constexpr double rounding = 1e-6;  ///< far above what bounds and simulations are apart by rounding

/// A bound, less what rounding may have added.
double at_least(double bound) { return bound * (1 - rounding); }

std::vector<std::size_t> sorted_by(std::vector<std::size_t> candidates, const std::vector<double>& key) {
  std::vector<std::size_t> places(candidates.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return key[a] < key[b]; });
  std::vector<std::size_t> sorted;
  for (const std::size_t place : places) sorted.push_back(candidates[place]);
  return sorted;
}

}  // namespace

bool Planner::simulated(std::size_t candidate) const {
  return trials_.trial(trials_.space().candidates[candidate].setup).state == Trial::State::simulated;
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
  return estimates_.figures(c, scenario, at_least(trial.step_s), at_least(trial.energy_j));
}

std::vector<std::size_t> Planner::open(const Scenario& scenario) const {
  std::vector<std::size_t> result;
  const CandidateSpace& space = trials_.space();
  for (std::size_t c = 0; c < space.candidates.size(); ++c) {
    if (!scenario.without.empty() &&
        scenario.without.contains(kinds_of(trials_.setup(space.candidates[c].setup).order)))
      continue;
    if (estimates_.out(c, scenario).empty()) result.push_back(c);
  }
  return result;
}

/// The setups of the first candidates that are not simulated yet, each once.
std::vector<std::size_t> Planner::first_setups(const std::vector<std::size_t>& candidates,
                                               std::size_t most) const {
  std::vector<std::size_t> setups;
  for (const std::size_t c : candidates) {
    if (setups.size() == most) break;
    const std::size_t s = trials_.space().candidates[c].setup;
    if (!simulated(c) && std::find(setups.begin(), setups.end(), s) == setups.end()) setups.push_back(s);
  }
  return setups;
}

void Planner::simulate_all(const Scenario& scenario) {
  const std::vector<std::size_t> all = open(scenario);
  std::vector<std::size_t> setups = first_setups(all, all.size());
  trials_.run(setups, [](std::size_t, double, double) { return false; });
}

std::optional<std::size_t> Planner::best(const Scenario& scenario) {
  for (;;) {
    std::vector<Standing> known;
    std::vector<std::size_t> unknown;
    std::vector<double> floors;
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t c : open(scenario)) {
      const Figures figures = simulated(c) ? estimates_.figures(c, scenario) : floor(c, scenario);
      if (!keeps(figures, scenario)) continue;
      const double value = value_of(scenario.objective, figures);
      if (!simulated(c)) {
        unknown.push_back(c);
        floors.push_back(value);
        continue;
      }
      known.push_back(standing(c, scenario, figures));
      least = std::min(least, value);
    }
    std::vector<std::size_t> hopeful;
    std::vector<double> keys;
    for (std::size_t i = 0; i < unknown.size(); ++i)
      if (ties_with_best(floors[i], least)) hopeful.push_back(unknown[i]), keys.push_back(floors[i]);
    const std::vector<std::size_t> setups = first_setups(sorted_by(hopeful, keys), Trials::at_a_time);
    if (setups.empty()) return best_of(std::move(known));
    trials_.run(setups, [&](std::size_t s, double step_s, double energy_j) {
      return std::none_of(hopeful.begin(), hopeful.end(), [&](std::size_t c) {
        if (trials_.space().candidates[c].setup != s) return false;
        const Figures least_of_c = estimates_.figures(c, scenario, at_least(step_s), at_least(energy_j));
        return keeps(least_of_c, scenario) && ties_with_best(value_of(scenario.objective, least_of_c), least);
      });
    });
  }
}

std::vector<std::size_t> Planner::front(const Scenario& scenario) {
  for (;;) {
    std::vector<Standing> known, unknown;
    for (const std::size_t c : open(scenario)) {
      const Figures figures = simulated(c) ? estimates_.figures(c, scenario) : floor(c, scenario);
      if (keeps(figures, scenario))
        (simulated(c) ? known : unknown).push_back(standing(c, scenario, figures));
    }
    const std::vector<Standing> front = front_of(std::move(known));
    std::erase_if(unknown, [&](const Standing& at_best) {
      return cannot_reach(front, at_best.time_s, at_best.cost_usd);
    });
    if (unknown.empty()) {
      std::vector<std::size_t> candidates;
      for (const Standing& each : front) candidates.push_back(each.candidate);
      return candidates;
    }
    std::vector<std::size_t> hopeful;
    for (const Standing& each : unknown) hopeful.push_back(each.candidate);
    // From the cheap end to the quick one: a few of each kind at a time.
    std::vector<std::size_t> setups;
    for (const double quick : {0.0, 0.5, 1.0, 2.0, 8.0}) {
      std::vector<double> key;
      for (const Standing& each : unknown)
        key.push_back(std::log(each.cost_usd) + quick * std::log(each.time_s));
      for (const std::size_t s : first_setups(sorted_by(hopeful, key), Trials::at_a_time / 4))
        if (std::find(setups.begin(), setups.end(), s) == setups.end() && setups.size() < Trials::at_a_time)
          setups.push_back(s);
    }
    trials_.run(setups, [&](std::size_t s, double step_s, double energy_j) {
      return std::none_of(hopeful.begin(), hopeful.end(), [&](std::size_t c) {
        if (trials_.space().candidates[c].setup != s) return false;
        const Figures least_of_c = estimates_.figures(c, scenario, at_least(step_s), at_least(energy_j));
        return keeps(least_of_c, scenario) && !cannot_reach(front, least_of_c.time_s, least_of_c.cost_usd);
      });
    });
  }
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
    count += !trials_.trial(candidate.setup).label.empty();
  return count;
}

std::int64_t Planner::simulated_count() const {
  std::int64_t count = 0;
  for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c) count += simulated(c);
  return count;
}

}  // namespace convoy::planning
