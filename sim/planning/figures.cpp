// SPDX-License-Identifier: MIT
#include "sim/planning/figures.h"

namespace convoy {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double seconds_an_hour = 3600;

}  // namespace

Ledger::Ledger(const Trials& trials) : trials_(trials) {
  for (const Setup& setup : trials.space().setups) add_setup(setup);
  for (const Candidate& candidate : trials.space().candidates) add_candidate(candidate);
}

void Ledger::add_setup(const Setup& setup) {
  epochs_.push_back(trials_.spec().goal.epochs(static_cast<double>(setup.global_batch)));
  double idle_w = 0, hosts = 0;
  for (const auto& [name, count] : setup.order) {
    const ServerSpec& server = trials_.servers().at(name);
    double of_one = server.host.host_power_w;
    for (const auto& [type, devices] : server.devices) of_one += type.idle_power_w * devices;
    idle_w += of_one * static_cast<double>(count);
    hosts += static_cast<double>(count);
  }
  idle_w_.push_back(idle_w);
  hosts_.push_back(hosts);
}

void Ledger::add_candidate(const Candidate& candidate) {
  const Order& order = trials_.setup(candidate.setup).order;
  const std::string& first = order.front().first;
  grids_.push_back(find_grid_region(first.substr(0, first.find('-')), candidate.region));
  std::optional<Risk> risk;
  if (candidate.market == Market::spot) {
    risk.emplace();
    risk->faults.lost_at_once = 0;
    for (const auto& [name, count] : order) {  // the mean over its hosts
      const std::optional<InterruptionRate> rate =
          find_interruption_rate(name, candidate.region, trials_.spec().interruptions);
      if (!rate) {
        risk.reset();
        break;
      }
      const double share = static_cast<double>(count) / hosts_[candidate.setup];
      risk->faults.per_host_s += share * rate->per_host_h / seconds_an_hour;
      risk->faults.lost_at_once += share * rate->lost_at_once;
      risk->wait_s += share * rate->wait_h.value_or(0) * seconds_an_hour;
    }
  }
  risks_.push_back(risk);
}

std::string Ledger::out(std::size_t c, const Scenario& scenario) const {
  const Candidate& candidate = trials_.space().candidates[c];
  const Setup& setup = trials_.setup(candidate.setup);
  const Trial& trial = trials_.trial(candidate.setup);
  const PlanConstraints& limits = scenario.constraints;
  if (limits.max_devices && setup.devices > *limits.max_devices) return "max_devices";
  if (limits.max_global_batch && setup.global_batch > *limits.max_global_batch) return "max_global_batch";
  if (!epochs_[candidate.setup]) return "goal";
  const bool needs_price = scenario.objective == PlanObjective::cost ||
                           scenario.objective == PlanObjective::front || limits.budget_usd;
  if (needs_price && candidate.prices.empty()) return "price";
  if (scenario.objective == PlanObjective::carbon && !grids_[c]) return "carbon";
  if (trial.state == Trial::State::too_large) return "memory";
  if (trial.state == Trial::State::failed) return "failed";
  if (trial.state == Trial::State::cannot_run) return "cannot_run";
  return {};
}

double Ledger::usd_per_h(std::size_t c, const Scenario& scenario) const {
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

Figures Ledger::figures(std::size_t c, const Scenario& scenario) const {
  const Trial& trial = trials_.trial(trials_.space().candidates[c].setup);
  return figures(c, scenario, trial.step_s, trial.energy_j);
}

Figures Ledger::figures(std::size_t c, const Scenario& scenario, double step_s, double energy_j) const {
  const Candidate& candidate = trials_.space().candidates[c];
  const Setup& setup = trials_.setup(candidate.setup);
  const Goal& goal = trials_.spec().goal;
  Figures figures;
  figures.epochs = epochs_[candidate.setup] ? epochs_[candidate.setup]->epochs : infinite;
  const double steps = figures.epochs * goal.samples() / static_cast<double>(setup.global_batch);
  const double work_s = steps * step_s;
  double beside_s = goal.beside_s(figures.epochs);
  figures.time_s = work_s + beside_s;
  double paid_s = figures.time_s;
  if (const std::optional<Risk>& risk = risks_[c]; risk && work_s > 0) {
    const double every_s = goal.checkpoint().every_epochs * work_s / figures.epochs;
    const Recovery recovery{goal.checkpoint().time_s, every_s, risk->wait_s, goal.start_up_s()};
    const double undisturbed_s = goal.start_up_s() + goal.evaluation().all_s(figures.epochs);
    const RunEstimate estimate = expected_run(risk->faults, recovery, hosts_[candidate.setup], work_s);
    figures.interruptions = estimate.events;
    figures.time_s = undisturbed_s + estimate.time_s;
    paid_s = undisturbed_s + estimate.paid_host_s / hosts_[candidate.setup];
    beside_s = paid_s - work_s;
  }
  figures.cost_usd = usd_per_h(c, scenario) * paid_s / seconds_an_hour;
  figures.energy_j = steps * energy_j + beside_s * idle_w_[candidate.setup];
  if (grids_[c]) figures.carbon_kg = grids_[c]->carbon_kg(figures.energy_j);
  return figures;
}

std::string Ledger::broken(const Figures& figures, const Scenario& scenario) {
  if (scenario.constraints.deadline_s && figures.time_s > *scenario.constraints.deadline_s) return "deadline";
  if (scenario.constraints.budget_usd && figures.cost_usd > *scenario.constraints.budget_usd) return "budget";
  return {};
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

}  // namespace convoy
