// SPDX-License-Identifier: MIT
#include "sim/planning/figures.h"

namespace convoy {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double seconds_an_hour = 3600;

}  // namespace

Ledger::Ledger(const Trials& trials) : trials_(trials) {
  for (const Setup& setup : trials.space().setups) {
    epochs_.push_back(trials.spec().goal.epochs(static_cast<double>(setup.global_batch)));
    double idle_w = 0;
    for (const auto& [name, count] : setup.order) {
      const ServerSpec& server = trials.servers().at(name);
      double of_one = server.host.host_power_w;
      for (const auto& [type, devices] : server.devices) of_one += type.idle_power_w * devices;
      idle_w += of_one * static_cast<double>(count);
    }
    idle_w_.push_back(idle_w);
  }
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
  const double beside_s = goal.beside_s(figures.epochs);
  figures.time_s = steps * step_s + beside_s;
  figures.cost_usd = usd_per_h(c, scenario) * figures.time_s / seconds_an_hour;
  figures.energy_j = steps * energy_j + beside_s * idle_w_[candidate.setup];
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
