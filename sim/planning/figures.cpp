// SPDX-License-Identifier: MIT
#include "sim/planning/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/costs/residuals.h"

namespace convoy::inline planning {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Half of the interval of a step that lasts no less than its images take to be made ready, as a share of it.
/// @param sign 1: of the longer half @param reach of the step without images, as a share of it
/// @param of_several what steps of several devices err by, as a share, whether they wait or not
/// @param images how long they take, as a share of the step without them
double reach_waiting(double sign, double reach, double of_several, double images) {
  const double of_parts = std::sqrt(std::max(0.0, reach * reach - of_several * of_several));
  const double moved = std::max(images, 1 + sign * of_parts) / std::max(images, 1.0);
  return std::hypot(moved - 1, of_several);
}

}  // namespace

Estimates::Estimates(const Trials& trials)
    : trials_(trials),
      facts_(std::make_shared<const CandidateFacts>(trials.spec(), trials.servers(), trials.space())) {}

RunEstimate Estimates::estimate(std::size_t c, const CandidateFacts::Risk& risk, double work_s,
                                double epochs) const {
  const Goal& goal = trials_.spec().goal;
  const auto hosts = static_cast<double>(facts_->hosts(setup_of(c)));
  if (trials_.space().candidates[c].reaction == OnInterruption::go_on) {
    RunEstimate run = expected_elastic_run(risk.faults, {goal.start_up_s(), risk.wait_s}, hosts, work_s);
    const double checkpoints_s = goal.checkpoint().all_s(epochs);
    run.time_s += checkpoints_s;
    run.paid_host_s += hosts * checkpoints_s;
    return run;
  }
  const double every_s = goal.checkpoint().every_epochs * work_s / epochs;
  const Recovery recovery{goal.checkpoint().time_s, every_s, risk.wait_s, goal.start_up_s()};
  return expected_run(risk.faults, recovery, hosts, work_s);
}

std::pair<double, double> Estimates::rate_factors(std::size_t c) const {
  const std::optional<CandidateFacts::Risk>& risk = facts_->risk(c);
  return risk ? std::pair{risk->least_rate, risk->most_rate} : std::pair{1.0, 1.0};
}

std::pair<double, double> Estimates::own_factors(std::size_t c, const Scenario& scenario) const {
  const std::size_t s = setup_of(c);
  const TrialDetails& details = trials_.details(s);
  const EpochsNeeded& epochs = *facts_->epochs(s);
  if (!details.in_full) throw std::logic_error("a candidate whose interval nobody asked for");
  double less = 1 - details.step_low, more = details.step_high - 1;
  const double waited_s =
      scenario.input ? trials_.bounds().waited_for_s(trials_.setup(s), *scenario.input) : 0;
  if (waited_s > 0 && details.own_interval) {
    const bool several = trials_.setup(s).devices > 1;
    const double images = waited_s / trials_.trial(s).step_s;
    less = reach_waiting(-1, less, several ? -std::expm1(-quantile_80 * devices_spread()) : 0, images);
    more = reach_waiting(1, more, several ? std::expm1(quantile_80 * devices_spread()) : 0, images);
  }
  return {std::max(0.0, 1 - std::hypot(less, 1 - epochs.least / epochs.epochs)),
          1 + std::hypot(more, epochs.most / epochs.epochs - 1)};
}

bool needs_price(const Scenario& scenario) {
  return scenario.objective == PlanObjective::cost || scenario.objective == PlanObjective::front ||
         scenario.constraints.budget_usd || scenario.priced;
}

std::string_view Estimates::out(std::size_t c, const Scenario& scenario) const {
  const Candidate& candidate = trials_.space().candidates[c];
  const Setup& setup = trials_.setup(candidate.setup);
  const Trial& trial = trials_.trial(candidate.setup);
  const PlanConstraints& limits = scenario.constraints;
  if (limits.max_devices && setup.devices > *limits.max_devices) return "max_devices";
  if (limits.max_global_batch && setup.global_batch > *limits.max_global_batch) return "max_global_batch";
  if (!trials_.spec().goal.is_given() && facts_->trains_otherwise(candidate.setup)) return "method";
  if (!facts_->epochs(candidate.setup)) return "goal";
  if (needs_price(scenario) && candidate.prices.empty()) return "price";
  if (scenario.objective == PlanObjective::carbon && !facts_->grid(c)) return "carbon";
  if (trial.state == TrialState::too_large) return "memory";
  if (trial.state == TrialState::failed) return "failed";
  if (trial.state == TrialState::cannot_run) return "cannot_run";
  return {};
}

double Estimates::usd_per_h(std::size_t c, const Scenario& scenario) const {
  if (scenario.price_factor.empty()) return facts_->usd_per_h(c);
  const Candidate& candidate = trials_.space().candidates[c];
  if (candidate.prices.empty()) return infinite;
  const Order& order = trials_.setup(candidate.setup).order;
  double sum = 0;
  for (std::size_t kind = 0; kind < order.size(); ++kind) {
    const auto& [name, count] = order[kind];
    const auto changed = scenario.price_factor.find(name);
    sum += candidate.prices[kind].usd_per_hour * static_cast<double>(count) *
           (changed == scenario.price_factor.end() ? 1 : changed->second);
  }
  return sum;
}

Figures Estimates::figures(std::size_t c, const Scenario& scenario) const {
  const Trial& trial = trials_.trial(trials_.space().candidates[c].setup);
  return figures(c, scenario, trial.step_s, trial.energy_j);
}

Figures Estimates::figures(std::size_t c, const Scenario& scenario, double step_s, double energy_j) const {
  const Candidate& candidate = trials_.space().candidates[c];
  const Setup& setup = trials_.setup(candidate.setup);
  const Goal& goal = trials_.spec().goal;
  Figures figures;
  const std::optional<EpochsNeeded>& epochs = facts_->epochs(candidate.setup);
  figures.epochs = epochs ? epochs->epochs : infinite;
  const double steps = figures.epochs * goal.samples() / static_cast<double>(setup.global_batch);
  if (scenario.input) {
    const double waited_s = std::max(0.0, trials_.bounds().waited_for_s(setup, *scenario.input) - step_s);
    step_s += waited_s;
    energy_j += waited_s * facts_->idle_w(candidate.setup);
  }
  const double work_s = steps * step_s;
  const double evaluation_s = Goal::Pause{scenario.evaluation_s, 1}.all_s(figures.epochs);
  double beside_s = goal.beside_s(figures.epochs) + evaluation_s;
  figures.time_s = work_s + beside_s;
  double paid_s = figures.time_s;
  if (const std::optional<CandidateFacts::Risk>& risk = facts_->risk(c); risk && work_s > 0) {
    const double undisturbed_s = goal.start_up_s() + goal.evaluation().all_s(figures.epochs) + evaluation_s;
    const RunEstimate run = estimate(c, *risk, work_s, figures.epochs);
    figures.interruptions = run.events;
    figures.lost_s = std::max(0.0, undisturbed_s + run.time_s - figures.time_s);
    figures.time_s = undisturbed_s + run.time_s;
    paid_s = undisturbed_s + run.paid_host_s / static_cast<double>(facts_->hosts(candidate.setup));
    beside_s = paid_s - work_s;
  }
  figures.cost_usd = usd_per_h(c, scenario) * paid_s / seconds_an_hour;
  figures.energy_j = steps * energy_j + beside_s * facts_->idle_w(candidate.setup);
  if (facts_->electricity_usd_per_j(c) > 0) {
    figures.electricity_usd = figures.energy_j * facts_->electricity_usd_per_j(c);
    figures.cost_usd += *figures.electricity_usd;
  }
  if (const GridRegion* grid = facts_->grid(c)) figures.carbon_kg = grid->carbon_kg(figures.energy_j);
  return figures;
}

double Estimates::idle_usd_per_h(std::size_t c, const Scenario& scenario) const {
  const double idle_w = facts_->idle_w(setup_of(c));
  return usd_per_h(c, scenario) + idle_w * seconds_an_hour * facts_->electricity_usd_per_j(c);
}

std::string_view Estimates::broken(const Figures& figures, const Scenario& scenario) {
  if (scenario.constraints.deadline_s && figures.time_s > *scenario.constraints.deadline_s) return "deadline";
  if (scenario.constraints.budget_usd && figures.cost_usd > *scenario.constraints.budget_usd) return "budget";
  return {};
}

bool within_interval(double more, double low, double least, double high) {
  return more - least <= std::hypot(more * (1 - low), least * (high - 1));
}

double value_of(PlanObjective objective, const Figures& figures) {
  switch (objective) {
    case PlanObjective::cost:
      return figures.cost_usd;
    case PlanObjective::time:
      return figures.time_s;
    case PlanObjective::energy:
      return figures.energy_j;
    case PlanObjective::carbon:
      return figures.carbon_kg;
    case PlanObjective::front:
      return figures.time_s * figures.cost_usd;
  }
  return 0;
}

}  // namespace convoy::planning
