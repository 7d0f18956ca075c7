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
constexpr double seconds_an_hour = 3600;

/// What of the network between hosts of these servers the catalogue does not know; "" where it knows all.
std::string doubt_of_network(const Order& order, const ServerTable& servers) {
  std::vector<const ServerSpec*> kinds;
  for (const auto& [name, count] : order) kinds.push_back(&servers.at(name));
  if (const SpokenProtocol spoken = protocol_between(kinds); spoken.assumed()) return assumption_text(spoken);
  for (const ServerSpec* server : kinds)
    if (const Source* source = find_source(server->sources, "fabric.bandwidth");
        source && is_guess(source->grade))
      return fmt::format("the bandwidth between hosts of {} is assumed: {}", server->host.server,
                         source->text);
  return {};
}

/// Share of an order's power, with all devices at their peak, that machines written out in the plan draw.
double own_share(const PlanSpec& spec, const Order& order, const ServerTable& servers) {
  double own_w = 0, all_w = 0;
  for (const auto& [name, count] : order) {
    const ServerSpec& server = servers.at(name);
    double of_one_w = server.host.host_power_w;
    for (const auto& [type, devices] : server.devices) of_one_w += type.peak_power_w * devices;
    all_w += of_one_w * static_cast<double>(count);
    if (spec.own_servers.contains(name)) own_w += of_one_w * static_cast<double>(count);
  }
  return all_w > 0 ? own_w / all_w : 0;
}

/// Of machines of one's own: what the electricity of a region emits, whoever has a data centre there.
const GridRegion* grid_of(const std::string& region) {
  const std::vector<GridRegion>& all = grid_regions();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const GridRegion& row) { return row.region == region; });
  return found == all.end() ? nullptr : &*found;
}

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

Estimates::Estimates(const Trials& trials) : trials_(trials) {
  std::map<std::string, std::string> method_doubts;  // by strategy
  for (const Setup& setup : trials.space().setups) add_setup(setup, method_doubts);
  for (const Candidate& candidate : trials.space().candidates) add_candidate(candidate);
}

void Estimates::add_setup(const Setup& setup, std::map<std::string, std::string>& method_doubts) {
  const auto [epochs, is_new_batch] = epochs_of_batch_.try_emplace(setup.global_batch);
  if (is_new_batch) epochs->second = trials_.spec().goal.epochs(static_cast<double>(setup.global_batch));
  epochs_.push_back(epochs->second);
  double idle_w = 0;
  std::int64_t hosts = 0;
  for (const auto& [name, count] : setup.order) {
    const ServerSpec& server = trials_.servers().at(name);
    double of_one = server.host.host_power_w;
    for (const auto& [type, devices] : server.devices) of_one += type.idle_power_w * devices;
    idle_w += of_one * static_cast<double>(count);
    hosts += count;
  }
  idle_w_.push_back(idle_w);
  hosts_.push_back(hosts);
  const auto [doubt_of_method, is_new_method] = method_doubts.try_emplace(to_flow(setup.strategy));
  if (is_new_method) doubt_of_method->second = read_strategy(setup.strategy)->trains_otherwise();
  method_doubts_.push_back(doubt_of_method->second);
  if (hosts > 1)
    if (const auto [doubt, is_new] = network_doubts_.try_emplace(kinds_of(setup.order)); is_new)
      doubt->second = doubt_of_network(setup.order, trials_.servers());
}

void Estimates::add_candidate(const Candidate& candidate) {
  const Order& order = trials_.setup(candidate.setup).order;
  const std::string& first = order.front().first;
  electricity_usd_per_j_.push_back(trials_.spec().electricity_usd_per_j.value_or(0) *
                                   own_share(trials_.spec(), order, trials_.servers()));
  grids_.push_back(trials_.spec().own_servers.contains(first)
                       ? grid_of(candidate.region)
                       : find_grid_region(first.substr(0, first.find('-')), candidate.region));
  for (const Price& price : candidate.prices)
    if (const auto [doubt, is_new] = price_doubts_.try_emplace({price.server, price.region, price.market});
        is_new)
      doubt->second = trials_.spec().prices().doubt(price);
  if (candidate.market == Market::spot)
    for (const auto& [name, count] : order)
      if (const auto [risk, is_new] = spot_risks_.try_emplace({name, candidate.region}); is_new)
        risk->second =
            find_spot_risk(interruption_rates(), name, candidate.region, trials_.spec().interruptions);
  risks_.push_back(risk_of(candidate, order));
  doubtful_.push_back(!doubts(doubtful_.size()).empty());
}

std::vector<std::string> Estimates::doubts(std::size_t c) const {
  const Candidate& candidate = trials_.space().candidates[c];
  const Setup& setup = trials_.setup(candidate.setup);
  std::vector<std::string> doubts;
  for (const Price& price : candidate.prices)
    if (const std::string& doubt = price_doubts_.at({price.server, price.region, price.market});
        !doubt.empty())
      doubts.push_back(fmt::format("{}: {}", price.server, doubt));
  if (const auto doubt = trials_.spec().goal.batch_doubt(static_cast<double>(setup.global_batch)))
    doubts.push_back(*doubt);
  if (const std::string& doubt = method_doubts_[candidate.setup]; !doubt.empty()) doubts.push_back(doubt);
  if (hosts_[candidate.setup] > 1)
    if (const std::string& doubt = network_doubts_.at(kinds_of(setup.order)); !doubt.empty())
      doubts.push_back(doubt);
  for (const auto& [name, count] : setup.order)
    for (const auto& [type, devices] : trials_.servers().at(name).devices)
      if (std::string doubt = unseen_device_text(type);
          !doubt.empty() && std::find(doubts.begin(), doubts.end(), doubt) == doubts.end())
        doubts.push_back(std::move(doubt));
  if (candidate.market != Market::spot) return doubts;
  for (const auto& [name, count] : setup.order) {
    const std::optional<SpotRisk>& risk = spot_risks_.at({name, candidate.region});
    if (!risk)
      doubts.push_back(
          fmt::format("how often {} is taken away is not known: no interruption is counted", name));
    else
      doubts.insert(doubts.end(), risk->doubts.begin(), risk->doubts.end());
  }
  return doubts;
}

/// Interruptions of spot machines and, where they count, failures of hosts: the means over the order's hosts.
std::optional<Estimates::Risk> Estimates::risk_of(const Candidate& candidate, const Order& order) const {
  const PlanSpec& spec = trials_.spec();
  const bool spot = candidate.market == Market::spot;
  if (!spot && !spec.failures) return std::nullopt;
  double taken_s = 0, failing_s = 0, at_once = 0, wait_s = 0;  // hosts a second, of one host
  double least_s = 0, most_s = 0;                              // between which taken_s lies
  for (const auto& [name, count] : order) {
    const double share = static_cast<double>(count) / static_cast<double>(hosts_[candidate.setup]);
    if (spec.failures) {
      const auto& [type, devices] = trials_.servers().at(name).devices.front();
      constexpr double devices_of_table = 8, seconds_a_day = 24 * seconds_an_hour;
      failing_s +=
          share * failure_rate_of(type.name).per_host_day * devices / devices_of_table / seconds_a_day;
    }
    if (!spot) continue;
    const std::optional<SpotRisk>& known = spot_risks_.at({name, candidate.region});
    if (!known) return std::nullopt;
    taken_s += share * known->per_host_h / seconds_an_hour;
    least_s += share * known->least_per_host_h / seconds_an_hour;
    most_s += share * known->most_per_host_h / seconds_an_hour;
    at_once += share * known->lost_at_once;
    wait_s += share * known->wait_h * seconds_an_hour;
  }
  Risk risk;
  risk.faults.per_host_s = taken_s + failing_s;
  if (risk.faults.per_host_s <= 0) return risk;
  // Hosts that fail go one by one.
  const double events = (spot ? taken_s / at_once : 0) + failing_s;
  risk.faults.lost_at_once = risk.faults.per_host_s / events;
  risk.wait_s = (taken_s * wait_s + failing_s * spec.repair_s) / risk.faults.per_host_s;
  risk.least_rate = (least_s + failing_s) / risk.faults.per_host_s;
  risk.most_rate = (most_s + failing_s) / risk.faults.per_host_s;
  return risk;
}

RunEstimate Estimates::estimate(const Candidate& candidate, const Risk& risk, double work_s,
                                double epochs) const {
  const Goal& goal = trials_.spec().goal;
  const auto hosts = static_cast<double>(hosts_[candidate.setup]);
  if (candidate.reaction == OnInterruption::go_on) {
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
  const std::optional<Risk>& risk = risks_[c];
  return risk ? std::pair{risk->least_rate, risk->most_rate} : std::pair{1.0, 1.0};
}

std::pair<double, double> Estimates::own_factors(std::size_t c, const Scenario& scenario) const {
  const std::size_t s = trials_.space().candidates[c].setup;
  const Trial& trial = trials_.trial(s);
  const EpochsNeeded& epochs = *epochs_[s];
  if (!trial.in_full) throw std::logic_error("a candidate whose interval nobody asked for");
  double less = 1 - trial.step_low, more = trial.step_high - 1;
  const double waited_s = scenario.input ? trials_.waited_for_s(trials_.setup(s), *scenario.input) : 0;
  if (waited_s > 0 && trial.own_interval) {
    const bool several = trials_.setup(s).devices > 1;
    const double images = waited_s / trial.step_s;
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

std::string Estimates::out(std::size_t c, const Scenario& scenario) const {
  const Candidate& candidate = trials_.space().candidates[c];
  const Setup& setup = trials_.setup(candidate.setup);
  const Trial& trial = trials_.trial(candidate.setup);
  const PlanConstraints& limits = scenario.constraints;
  if (limits.max_devices && setup.devices > *limits.max_devices) return "max_devices";
  if (limits.max_global_batch && setup.global_batch > *limits.max_global_batch) return "max_global_batch";
  if (!trials_.spec().goal.is_given() && !method_doubts_[candidate.setup].empty()) return "method";
  if (!epochs_[candidate.setup]) return "goal";
  if (needs_price(scenario) && candidate.prices.empty()) return "price";
  if (scenario.objective == PlanObjective::carbon && !grids_[c]) return "carbon";
  if (trial.state == TrialState::too_large) return "memory";
  if (trial.state == TrialState::failed) return "failed";
  if (trial.state == TrialState::cannot_run) return "cannot_run";
  return {};
}

double Estimates::usd_per_h(std::size_t c, const Scenario& scenario) const {
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
  figures.epochs = epochs_[candidate.setup] ? epochs_[candidate.setup]->epochs : infinite;
  const double steps = figures.epochs * goal.samples() / static_cast<double>(setup.global_batch);
  if (scenario.input) {
    const double waited_s = std::max(0.0, trials_.waited_for_s(setup, *scenario.input) - step_s);
    step_s += waited_s;
    energy_j += waited_s * idle_w_[candidate.setup];
  }
  const double work_s = steps * step_s;
  const double evaluation_s = Goal::Pause{scenario.evaluation_s, 1}.all_s(figures.epochs);
  double beside_s = goal.beside_s(figures.epochs) + evaluation_s;
  figures.time_s = work_s + beside_s;
  double paid_s = figures.time_s;
  if (const std::optional<Risk>& risk = risks_[c]; risk && work_s > 0) {
    const double undisturbed_s = goal.start_up_s() + goal.evaluation().all_s(figures.epochs) + evaluation_s;
    const RunEstimate run = estimate(candidate, *risk, work_s, figures.epochs);
    figures.interruptions = run.events;
    figures.lost_s = std::max(0.0, undisturbed_s + run.time_s - figures.time_s);
    figures.time_s = undisturbed_s + run.time_s;
    paid_s = undisturbed_s + run.paid_host_s / static_cast<double>(hosts_[candidate.setup]);
    beside_s = paid_s - work_s;
  }
  figures.cost_usd = usd_per_h(c, scenario) * paid_s / seconds_an_hour;
  figures.energy_j = steps * energy_j + beside_s * idle_w_[candidate.setup];
  if (electricity_usd_per_j_[c] > 0) {
    figures.electricity_usd = figures.energy_j * electricity_usd_per_j_[c];
    figures.cost_usd += *figures.electricity_usd;
  }
  if (grids_[c]) figures.carbon_kg = grids_[c]->carbon_kg(figures.energy_j);
  return figures;
}

double Estimates::idle_usd_per_h(std::size_t c, const Scenario& scenario) const {
  const double idle_w = idle_w_[trials_.space().candidates[c].setup];
  return usd_per_h(c, scenario) + idle_w * seconds_an_hour * electricity_usd_per_j_[c];
}

std::string Estimates::broken(const Figures& figures, const Scenario& scenario) {
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
