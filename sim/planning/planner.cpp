// SPDX-License-Identifier: MIT
#include "sim/planning/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace convoy::inline planning {
namespace {

constexpr double rounding = 1e-6;  ///< far above what bounds and simulations are apart by rounding

/// A bound, less what rounding may have added.
double at_least(double bound) { return bound * (1 - rounding); }

/// Quick and cheap: what the front weighs.
struct Spot {
  double time_s, cost_usd;
};
Spot spot_of(const Figures& figures) { return {figures.time_s, figures.cost_usd}; }

bool beats(const Spot& a, const Spot& b) {
  return a.time_s <= b.time_s && a.cost_usd <= b.cost_usd && (a.time_s < b.time_s || a.cost_usd < b.cost_usd);
}

bool beaten(const Spot& spot, const std::vector<Spot>& front) {
  return std::any_of(front.begin(), front.end(), [&](const Spot& other) { return beats(other, spot); });
}

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
  if (!Ledger::broken(figures, scenario).empty()) return false;
  return !scenario.value_below || value_of(scenario.value_of, figures) < *scenario.value_below;
}

std::vector<std::size_t> Planner::open(const Scenario& scenario) const {
  std::vector<std::size_t> result;
  const CandidateSpace& space = trials_.space();
  for (std::size_t c = 0; c < space.candidates.size(); ++c) {
    if (!scenario.without.empty() &&
        scenario.without.contains(kinds_of(trials_.setup(space.candidates[c].setup).order)))
      continue;
    if (ledger_.out(c, scenario).empty()) result.push_back(c);
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
    std::optional<std::size_t> best;
    std::tuple<double, double> least{};
    std::vector<std::size_t> unknown;
    std::vector<double> value;
    for (const std::size_t c : open(scenario)) {
      const Figures figures = ledger_.figures(c, scenario);
      if (!simulated(c)) {
        const Figures floor =
            ledger_.figures(c, scenario, at_least(trials_.trial(trials_.space().candidates[c].setup).step_s),
                            at_least(trials_.trial(trials_.space().candidates[c].setup).energy_j));
        if (!keeps(floor, scenario)) continue;
        unknown.push_back(c);
        value.push_back(value_of(scenario.objective, floor));
        continue;
      }
      if (!keeps(figures, scenario)) continue;
      const std::tuple<double, double> rank{value_of(scenario.objective, figures), figures.time_s};
      if (best && rank >= least) continue;
      best = c;
      least = rank;
    }
    std::vector<std::size_t> hopeful;
    std::vector<double> keys;
    for (std::size_t i = 0; i < unknown.size(); ++i)
      if (!best || value[i] <= std::get<0>(least)) hopeful.push_back(unknown[i]), keys.push_back(value[i]);
    const std::vector<std::size_t> setups = first_setups(sorted_by(hopeful, keys), Trials::at_a_time);
    if (setups.empty()) return best;
    trials_.run(setups, [&](std::size_t s, double step_s, double energy_j) {
      return std::none_of(hopeful.begin(), hopeful.end(), [&](std::size_t c) {
        if (trials_.space().candidates[c].setup != s) return false;
        const Figures floor = ledger_.figures(c, scenario, at_least(step_s), at_least(energy_j));
        return keeps(floor, scenario) && (!best || value_of(scenario.objective, floor) <= std::get<0>(least));
      });
    });
  }
}

std::vector<std::size_t> Planner::front(const Scenario& scenario) {
  for (;;) {
    std::vector<std::size_t> known, unknown;
    std::vector<Spot> spots, floors;
    for (const std::size_t c : open(scenario)) {
      const Trial& trial = trials_.trial(trials_.space().candidates[c].setup);
      const bool exact = simulated(c);
      const Figures figures =
          exact ? ledger_.figures(c, scenario)
                : ledger_.figures(c, scenario, at_least(trial.step_s), at_least(trial.energy_j));
      if (!keeps(figures, scenario)) continue;
      (exact ? known : unknown).push_back(c);
      (exact ? spots : floors).push_back(spot_of(figures));
    }
    std::vector<std::size_t> front;
    std::vector<Spot> front_spots;
    for (std::size_t i = 0; i < known.size(); ++i) {
      const auto same = [&](const Spot& other) {
        return other.time_s == spots[i].time_s && other.cost_usd == spots[i].cost_usd;
      };
      if (beaten(spots[i], spots) || std::any_of(front_spots.begin(), front_spots.end(), same)) continue;
      front.push_back(known[i]);
      front_spots.push_back(spots[i]);
    }
    std::vector<std::size_t> hopeful;
    std::vector<Spot> hopes;
    for (std::size_t i = 0; i < unknown.size(); ++i)
      if (!beaten(floors[i], front_spots)) hopeful.push_back(unknown[i]), hopes.push_back(floors[i]);
    if (hopeful.empty()) {
      std::vector<double> times;
      for (const Spot& spot : front_spots) times.push_back(spot.time_s);
      return sorted_by(front, times);
    }
    // From the cheap end to the quick one: a few of each kind at a time.
    std::vector<std::size_t> setups;
    for (const double quick : {0.0, 0.5, 1.0, 2.0, 8.0}) {
      std::vector<double> key;
      for (const Spot& spot : hopes) key.push_back(std::log(spot.cost_usd) + quick * std::log(spot.time_s));
      for (const std::size_t s : first_setups(sorted_by(hopeful, key), Trials::at_a_time / 4))
        if (std::find(setups.begin(), setups.end(), s) == setups.end() && setups.size() < Trials::at_a_time)
          setups.push_back(s);
    }
    trials_.run(setups, [&](std::size_t s, double step_s, double energy_j) {
      return std::none_of(hopeful.begin(), hopeful.end(), [&](std::size_t c) {
        if (trials_.space().candidates[c].setup != s) return false;
        const Figures floor = ledger_.figures(c, scenario, at_least(step_s), at_least(energy_j));
        return keeps(floor, scenario) && !beaten(spot_of(floor), front_spots);
      });
    });
  }
}

std::map<std::string, std::int64_t> Planner::pruned(const Scenario& scenario) const {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c) {
    if (simulated(c)) continue;
    std::string reason = ledger_.out(c, scenario);
    if (reason.empty()) reason = Ledger::broken(ledger_.figures(c, scenario), scenario);
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
