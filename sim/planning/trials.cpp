// SPDX-License-Identifier: MIT
#include "sim/planning/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/names.h"
#include "sim/planning/interval.h"
#include "sim/run/out_of_resources.h"
#include "sim/run/search/assess.h"

namespace convoy::inline planning {
namespace {

/// The plan's servers of the providers that it names, and, where it names no server, with a price.
/// @throws InputError: there is none
ServerTable servers_of(const PlanSpec& spec) {
  ServerTable servers;
  const std::vector<std::string>& providers = spec.constraints.providers;
  for (const std::string& name : spec.servers) {
    if (!providers.empty() &&
        std::none_of(providers.begin(), providers.end(),
                     [&](const std::string& provider) { return name.starts_with(provider + "-"); }))
      continue;
    ServerSpec server = spec.own_servers.contains(name)
                            ? read_cluster(cluster_node(spec, {{name, 1}})).servers.front()
                            : load_server(name, spec.goal.pos());
    if (spec.all_servers && !has_price(spec, server)) continue;
    servers.emplace(name, std::move(server));
  }
  if (servers.empty())
    throw InputError(
        providers.empty() ? spec.markets_pos : spec.constraints.providers_pos,
        providers.empty()
            ? "plan.market: no server has a price there; add on_demand, or give --prices that have one"
            : fmt::format(
                  "plan.constraints.providers: none of plan.servers with a price is of {}; add others, "
                  "or leave out one of the two",
                  list_of(providers)));
  return servers;
}

/// Batches of the plan, or those that fit.
std::vector<std::int64_t> batches_of(const PlanSpec& spec, const SoloTable& solos, const std::string& server,
                                     Precision precision) {
  if (!spec.batches.empty()) return spec.batches;
  std::vector<std::int64_t> batches;
  for (const SoloStep& solo : solos.at({server, precision}).steps)
    if (solo.fits) batches.push_back(solo.batch);
  if (batches.empty()) batches.push_back(1);  // says why it cannot be
  return batches;
}

}  // namespace

Trials::Ground::Ground(const PlanSpec& plan, std::size_t jobs, const Progress& progress)
    : spec(plan),
      servers(servers_of(spec)),
      solos(measure_servers(
          spec, servers, preparer, jobs,
          [&](std::size_t done, std::size_t all) { progress("measuring servers", done, all); })),
      space(enumerate(spec, servers,
                      [this](const std::string& server, Precision precision) {
                        return batches_of(spec, solos, server, precision);
                      })),
      bounds(spec, servers, solos) {}

Trials::Trials(const PlanSpec& spec, std::size_t jobs, Progress progress)
    : ground_(std::make_shared<Ground>(spec, jobs, progress)),
      jobs_(jobs),
      progress_(std::move(progress)),
      trials_(space().setups.size() / block_size + 1) {}

Trials::Trials(const Trials& others, double bandwidth)
    : ground_(others.ground_),
      jobs_(others.jobs_),
      progress_(others.progress_),
      bandwidth_(bandwidth),
      trials_(others.trials_.size()) {
  try_out_.of = others.try_out();
}

Trials Trials::with_bandwidth(double factor) const { return {*this, factor}; }

const TrialDetails& Trials::details(std::size_t s) const {
  static const TrialDetails none;
  const auto found = details_.find(s);
  return found == details_.end() ? none : found->second;
}

std::vector<std::size_t> Trials::simulated() const {
  std::vector<std::size_t> setups;
  for (const auto& [s, details] : details_)
    if (own(s).state == TrialState::simulated) setups.push_back(s);
  return setups;
}

std::string Trials::message(std::size_t s) const {
  if (details_.contains(s)) return details(s).message;
  return own(s).state == TrialState::cannot_run ? bounds().why_not(setup(s)) : "";
}

const std::shared_ptr<TryOut>& Trials::try_out() const {
  if (!try_out_.of)
    try_out_.of =
        std::make_shared<TryOut>(jobs_, [ground = ground_](std::size_t s, Detail detail, double bandwidth) {
          return ground->preparer.prepare(point_of(ground->spec, ground->space.setups[s]), nullptr,
                                          {.bandwidth = bandwidth}, detail);
        });
  return try_out_.of;
}

void Trials::plan(const std::vector<std::size_t>& setups) {
  const auto planned = [&](std::size_t place, Tried<Assessment> tried) {
    progress_("planning candidates", ++planned_, space().setups.size());
    Trial& trial = own(setups[place]);
    trial.planned = true;
    if (tried.failed(trial.state, details_[setups[place]].message)) return;
    const Assessment& assessment = *tried.value;
    trial.state = assessment.fits_in(spec().constraints.memory) ? TrialState::planned : TrialState::too_large;
    trial.step_s = std::max(trial.step_s, assessment.step_bound_s);
    trial.input_step_s = std::max(trial.input_step_s, assessment.input_step_s);
    trial.energy_j = std::max(trial.energy_j, assessment.energy_bound_j);
    trial.peak_memory_bytes = assessment.peak_bytes;
  };
  try_out()->plan(setups, planned, bandwidth_);
}

std::vector<SearchSpace::Record> Trials::simulate(const std::vector<std::size_t>& setups) {
  auto outputs = std::make_shared<std::vector<Tried<RunOutput>>>(
      try_out()->simulate(setups, Detail::step, false, bandwidth_));
  std::vector<SearchSpace::Record> records;
  for (std::size_t item = 0; item < setups.size(); ++item)
    records.push_back([this, outputs, item, s = setups[item]] { record(s, (*outputs)[item]); });
  return records;
}

void Trials::record(std::size_t s, Tried<RunOutput>& tried) {
  progress_("simulating candidates", ++simulated_, space().setups.size());
  Trial& trial = own(s);
  TrialDetails& details = details_[s];
  if (tried.failed(trial.state, details.message)) return;
  const RunResult& result = tried.value->result;
  trial.state = TrialState::simulated;
  details.bound_step_s = trial.step_s, details.bound_energy_j = trial.energy_j;
  trial.step_s = result.step_time_s;
  trial.energy_j = result.energy_j;
  trial.peak_memory_bytes = result.peak_memory_bytes;
  details.bottleneck = result.bottleneck.text;
}

void Trials::simulate_in_full(std::vector<std::size_t> setups) {
  std::sort(setups.begin(), setups.end());
  setups.erase(std::unique(setups.begin(), setups.end()), setups.end());
  std::erase_if(setups, [&](std::size_t s) { return details(s).in_full; });
  if (setups.empty()) return;
  const std::vector<Tried<RunOutput>> outputs = try_out()->simulate(setups, Detail::all, false, bandwidth_);
  for (std::size_t i = 0; i < setups.size(); ++i) {
    TrialDetails& found = details_[setups[i]];
    if (!outputs[i].value)  // its step could be simulated, in less memory
      throw OutOfResources(fmt::format("the interval of {}, {} images a device: {}",
                                       text_of(setup(setups[i]).order), setup(setups[i]).batch_per_device,
                                       outputs[i].message));
    const RunResult& result = outputs[i].value->result;
    std::tie(found.step_low, found.step_high) = step_interval(result);
    found.own_interval = result.interval.has_value();
    found.label = result.algorithms.empty()
                      ? result.strategy
                      : fmt::format("{} ({})", result.strategy, fmt::join(result.algorithms, ", "));
    found.in_full = true;
  }
}

}  // namespace convoy::planning
