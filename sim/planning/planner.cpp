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
  /// @pre setups come in ascending order, as candidates do
  void add(std::size_t setup, const Rank& bound) {
    if (!hopes_.empty() && hopes_.back().candidate == setup)
      hopes_.back().bound = std::min(hopes_.back().bound, bound);
    else
      hopes_.push_back({bound, setup});
  }
  std::vector<Hope> all() {
    for (Hope& hope : hopes_)
      hope.bound = {without_last_digits(hope.bound.value), without_last_digits(hope.bound.time_s)};
    return std::move(hopes_);
  }

 private:
  /// So that of bounds which are equal but for rounding, the first setup's comes first.
  static double without_last_digits(double figure) {
    constexpr int bits = 40;
    int exponent = 0;
    const double fraction = std::frexp(figure, &exponent);
    return std::ldexp(std::round(std::ldexp(fraction, bits)), exponent - bits);
  }

  std::vector<Hope> hopes_;
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

/// A plan costs more than a look at all candidates.
constexpr std::size_t first_group = 2;

/// Of the objective: no candidate is above it.
constexpr double any_value = std::numeric_limits<double>::infinity();

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
          estimates_.facts().doubtful(c),
          estimates_.facts().hosts(setup),
          trials_.setup(setup).global_batch,
          c};
}

Figures Planner::floor(std::size_t c, const Scenario& scenario) const {
  const Trial& trial = trials_.trial(trials_.space().candidates[c].setup);
  return estimates_.figures(c, scenario, std::max(at_least(trial.step_s), trial.input_step_s),
                            at_least(trial.energy_j));
}

std::optional<double> Planner::value_where_kept(std::size_t c, const Scenario& scenario) const {
  if (!simulated(c)) return std::nullopt;
  const Figures known = figures(c, scenario);
  return keeps(known, scenario) ? std::optional(value_of(scenario.objective, known)) : std::nullopt;
}

Figures Planner::bound(std::size_t c, const Scenario& scenario) const {
  const TrialDetails& details = trials_.details(trials_.space().candidates[c].setup);
  return estimates_.figures(c, scenario, details.bound_step_s, details.bound_energy_j);
}

bool Planner::is_open(std::size_t c, const Scenario& scenario) const {
  if (scenario.undoubted && estimates_.facts().doubtful(c)) return false;
  if (!scenario.without.empty() &&
      scenario.without.contains(estimates_.facts().kinds(trials_.space().candidates[c].setup)))
    return false;
  return estimates_.out(c, scenario).empty();
}

std::vector<std::size_t> Planner::open(const Scenario& scenario, double most) const {
  // They are found for all candidates, which takes longer than to look at a few.
  const bool bounded = !std::isinf(most) && (!scenario.among || !least_values_.empty());
  if (bounded) least_values();
  std::vector<std::size_t> result;
  const auto add = [&](std::size_t c) {
    if (bounded && least_values_[c] > most) return;
    if (is_open(c, scenario)) result.push_back(c);
  };
  if (scenario.among)
    for (const std::size_t c : *scenario.among) add(c);
  else
    for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c) add(c);
  return result;
}

std::vector<std::size_t> Planner::open_and_simulated(const Scenario& scenario) const {
  const std::vector<Candidate>& candidates = trials_.space().candidates;
  std::vector<std::size_t> result;
  for (const std::size_t s : trials_.simulated()) {
    const auto of_setup = std::ranges::equal_range(candidates, s, {}, &Candidate::setup);
    for (auto it = of_setup.begin(); it != of_setup.end(); ++it) {
      const auto c = static_cast<std::size_t>(it - candidates.begin());
      if (scenario.among && !std::ranges::binary_search(*scenario.among, c)) continue;
      if (is_open(c, scenario)) result.push_back(c);
    }
  }
  return result;
}

const std::vector<double>& Planner::least_values() const {
  if (!least_values_.empty()) return least_values_;
  Scenario own;
  own.objective = trials_.spec().objective;
  least_values_.reserve(trials_.space().candidates.size());
  for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c)
    least_values_.push_back(value_of(own.objective, floor(c, own)));
  return least_values_;
}

double Planner::own_value(const Scenario& scenario, double value) const {
  if (scenario.objective != trials_.spec().objective) return any_value;
  double share = 1;
  for (const auto& [server, factor] : scenario.price_factor) share = std::min(share, factor);
  constexpr double rounding = 2 * tie_tolerance;
  return value * (1 + rounding) / share;
}

std::vector<std::pair<double, std::size_t>> Planner::least_on_any_links(const Scenario& scenario) const {
  std::vector<std::pair<double, std::size_t>> all;
  for (const std::size_t c : open(scenario, any_value)) {
    const Trial free = trials_.bounds().bound(trials_.setup(trials_.space().candidates[c].setup),
                                              std::numeric_limits<double>::infinity());
    const Figures figures = estimates_.figures(
        c, scenario, std::max(at_least(free.step_s), free.input_step_s), at_least(free.energy_j));
    if (keeps(figures, scenario)) all.emplace_back(value_of(scenario.objective, figures), c);
  }
  return all;
}

std::shared_ptr<const std::vector<std::size_t>> Planner::rivals(const Scenario& from,
                                                                const Scenario& to) const {
  const auto ends_of = [&](std::size_t c) {
    return simulated(c) ? std::pair(figures(c, from), figures(c, to))
                        : std::pair(floor(c, from), floor(c, to));
  };
  const auto values_of = [&](const std::pair<Figures, Figures>& ends) {
    return std::minmax({value_of(from.objective, ends.first), value_of(from.objective, ends.second)});
  };
  double of_all = any_value, of_undoubted = any_value;
  for (const std::size_t c : open_and_simulated(from)) {
    const auto ends = ends_of(c);
    if (!keeps(ends.first, from) || !keeps(ends.second, to)) continue;
    const double most = values_of(ends).second;
    of_all = std::min(of_all, most);
    if (!estimates_.facts().doubtful(c)) of_undoubted = std::min(of_undoubted, most);
  }
  const double most = std::max(of_all, of_undoubted);
  auto result = std::make_shared<std::vector<std::size_t>>();
  for (const std::size_t c : open(from, std::max(own_value(from, most), own_value(to, most)))) {
    const double least = values_of(ends_of(c)).first;
    if (ties_with_best(least, of_all) ||
        (!estimates_.facts().doubtful(c) && ties_with_best(least, of_undoubted)))
      result->push_back(c);
  }
  return result;
}

void Planner::simulate_first(const std::vector<std::size_t>& candidates) {
  std::set<std::size_t> setups;
  for (const std::size_t c : candidates)
    if (!simulated(c)) setups.insert(trials_.space().candidates[c].setup);
  trials_.plan({setups.begin(), setups.end()});
  std::erase_if(setups, [&](std::size_t s) { return trials_.trial(s).state != TrialState::planned; });
  for (const SearchSpace::Record& record : trials_.simulate({setups.begin(), setups.end()})) record();
}

void Planner::simulate_all(const Scenario& scenario) { simulate_first(open(scenario, any_value)); }

/// The standings of simulated candidates that keep the constraints, once no other candidate may change the
/// answer.
std::vector<Standing> Planner::search(const Scenario& scenario, const Question& question) {
  struct Seen {
    std::size_t candidate;
    TrialState state = TrialState::failed;
    std::optional<Standing> standing{};  ///< nothing: does not keep the constraints
  };
  std::vector<Seen> open_ones;
  std::vector<Standing> known, bounds;
  /// Takes in how far the candidate has come since it was last seen.
  const auto see = [&](Seen& seen) {
    const TrialState state = trials_.trial(trials_.space().candidates[seen.candidate].setup).state;
    if (seen.state != state && may_run(state)) {
      const bool exact = state == TrialState::simulated;
      const Figures now =
          exact ? estimates_.figures(seen.candidate, scenario) : floor(seen.candidate, scenario);
      seen.standing.reset();
      if (keeps(now, scenario)) seen.standing = standing(seen.candidate, scenario, now);
    }
    seen.state = state;
  };
  // What is out stays out, since bounds only grow.
  const auto is_out = [&](const Seen& seen) {
    if (seen.state == TrialState::simulated) return false;
    return !may_run(seen.state) || !seen.standing || question.is_out(*seen.standing);
  };
  for (const std::size_t c : open_and_simulated(scenario)) {
    see(open_ones.emplace_back(Seen{c}));
    if (open_ones.back().standing) known.push_back(*open_ones.back().standing);
  }
  question.hopes(known, {});  // so that most others are found to be out when they are first looked at
  for (const std::size_t c : open(scenario, own_value(scenario, question.most()))) {
    if (simulated(c)) continue;
    Seen seen{c};
    see(seen);
    if (!is_out(seen)) open_ones.push_back(seen);
  }
  const auto look = [&] {
    known.clear(), bounds.clear();
    for (Seen& seen : open_ones) {
      see(seen);
      if (seen.standing && may_run(seen.state))
        (seen.state == TrialState::simulated ? known : bounds).push_back(*seen.standing);
    }
    std::vector<Hope> hopes = question.hopes(known, bounds);
    std::erase_if(open_ones, is_out);
    return hopes;
  };
  QuestionSpace space(trials_, look);
  best_first(space, {.at_once = trials_.jobs(), .first_group = first_group, .grows_anew = true});
  return known;
}

std::optional<std::size_t> Planner::best(const Scenario& scenario) {
  const std::optional<std::size_t> first = least(scenario);
  if (!first || scenario.undoubted || !estimates_.facts().doubtful(*first)) return first;
  Scenario sure = scenario;
  sure.undoubted = true;
  const std::optional<std::size_t> other = least(sure);
  return other && is_tie(*this, *other, *first, scenario) ? other : first;
}

std::optional<std::size_t> Planner::least(const Scenario& scenario) {
  double least = std::numeric_limits<double>::infinity();
  const auto hopes_of = [&](const std::vector<Standing>& known, const std::vector<Standing>& bounds) {
    for (const Standing& each : known) least = std::min(least, each.value);
    const std::optional<Standing> best = best_standing(known);
    HopesOfSetups hopes;
    for (const Standing& each : bounds)
      if (!best || !cannot_lead(each, *best, least)) hopes.add(setup_of(each), {each.value, each.time_s});
    return hopes.all();
  };
  const auto is_out = [&](const Standing& bound) { return !ties_with_best(bound.value, least); };
  return best_of(search(scenario, {hopes_of, is_out, [&] { return least; }}));
}

std::vector<std::size_t> Planner::front(const Scenario& scenario) {
  std::vector<Standing> front;
  const auto hopes_of = [&](const std::vector<Standing>& known, const std::vector<Standing>& bounds) {
    front = front_of(known);
    HopesOfSetups hopes;
    for (const Standing& each : bounds)
      if (!cannot_join(front, each)) hopes.add(setup_of(each), front_order(each));
    return hopes.all();
  };
  const auto is_out = [&](const Standing& bound) { return can_never_join(front, bound); };
  std::vector<std::size_t> candidates;
  for (const Standing& each : front_of(search(scenario, {hopes_of, is_out, [] { return any_value; }})))
    candidates.push_back(each.candidate);
  return candidates;
}

std::map<std::string, std::int64_t> Planner::pruned(const Scenario& scenario) const {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t c = 0; c < trials_.space().candidates.size(); ++c) {
    if (simulated(c)) continue;
    std::string_view reason = estimates_.out(c, scenario);
    if (reason.empty()) reason = Estimates::broken(estimates_.figures(c, scenario), scenario);
    ++counts[std::string(reason.empty() ? "bound" : reason)];
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
