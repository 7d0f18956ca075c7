// SPDX-License-Identifier: MIT
#include "sim/run/variability.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "sim/base/key_parts.h"
#include "sim/base/names.h"
#include "sim/replay/replay.h"
#include "sim/run/dice.h"
#include "sim/run/evaluate.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {
namespace {

constexpr double level = 0.8, deviations_at_level = 1.2815515655446004;  // of a normal distribution
constexpr double seconds_a_day = 86400, seconds_an_hour = 3600;

using Links = VariabilitySpec::DegradedLinks;
using Stop = VariabilitySpec::Stop;
using Failures = VariabilitySpec::Failures;

Keys<Links> degraded_link_keys() {
  return {
      optional_text_key<Links>("link", "", "a name or a pattern",
                               "links, by the names that `convoy run --full --json` has", &Links::pattern)
          .required()
          .at(&Links::pos),
      share_key<Links>("bandwidth", "", true, "of theirs that they have left", &Links::bandwidth).required(),
      share_key<Links>("chance", "100%", false, "of each of them in every repetition", &Links::chance),
      optional_quantity_key<Links>("at", "the whole step", Dimension::time, false,
                                   "from this time of the step on", &Links::at_s)
          .at(&Links::at_pos)};
}

Keys<Stop> stop_keys() {
  return {optional_text_key<Stop>("host", "", "a host", "that stands still, with its devices", &Stop::host)
              .required()
              .at(&Stop::pos),
          optional_quantity_key<Stop>("at", "", Dimension::time, false, "from this time of the step on",
                                      &Stop::at_s)
              .required(),
          optional_quantity_key<Stop>("for", "", Dimension::time, true, "so long", &Stop::for_s).required(),
          share_key<Stop>("chance", "100%", false, "in every repetition", &Stop::chance)};
}

Keys<Failures::Given> given_failure_keys() {
  using Given = Failures::Given;
  return {
      optional_text_key<Given>("host", "", "a host", "that fails", &Given::host).required().at(&Given::pos),
      optional_quantity_key<Given>("at", "", Dimension::time, false, "time of the epoch's training",
                                   &Given::at_s)
          .required()};
}

Keys<Recovery> checkpoint_time_keys() {
  return {optional_quantity_key<Recovery>("time", "", Dimension::time, false, "that a checkpoint takes",
                                          &Recovery::checkpoint_s)
              .required(),
          optional_quantity_key<Recovery>("every", "", Dimension::time, true,
                                          "so much training there is a checkpoint", &Recovery::every_s)
              .required()};
}

Keys<Failures> failure_keys() {
  const auto recovery = [](Failures& failures) -> Recovery& { return failures.recovery; };
  return {
      custom_key<Failures>("per_host_day", "0", forms::number(0), "failures of a host in a day, by chance",
                           [](YamlMap& map, Failures& failures) {
                             failures.per_host_s = map.number_or("per_host_day", 0, 0) / seconds_a_day;
                             if (failures.per_host_s == 0 && !map.has("at"))
                               map.fail("give per_host_day, at, or both");
                           }),
      mappings_key<Failures>("at", "[{host: n0, at: 2h}]", "failures at given times", given_failure_keys(),
                             &Failures::given),
      optional_quantity_key<Failures>("wait", "0s", Dimension::time, false, "until there is another host",
                                      [](Failures& f) -> double& { return f.recovery.wait_s; }),
      optional_quantity_key<Failures>("restart", "0s", Dimension::time, false, "what a restart takes",
                                      [](Failures& f) -> double& { return f.recovery.restart_s; }),
      mapping_key<Failures>("checkpoint", "", "to the last of which everybody goes back",
                            checkpoint_time_keys(), recovery)
          .required()};
}

const Keys<VariabilitySpec>& all_variability_keys() {
  using Spec = VariabilitySpec;
  static const Keys<Spec> keys{
      integer_key<Spec>("runs", 1, 1'000'000, "repetitions", &Spec::runs),
      integer_key<Spec>("seed", 0, 1'000'000'000, "of the random numbers; repetition i has seed + i",
                        &Spec::seed),
      share_key<Spec>(
          "jitter", "0", false,
          "deviation of a device's computing in a step: its times are multiplied by a factor of a "
          "log-normal distribution of mean 1",
          &Spec::jitter),
      mappings_key<Spec>("links", "[{link: 'n0.nic*', bandwidth: 50%}]",
                         "links that have only a part of their bandwidth left", degraded_link_keys(),
                         &Spec::links),
      mappings_key<Spec>("stops", "[{host: n0, at: 100ms, for: 2s}]",
                         "hosts that stand still in the middle of a step", stop_keys(), &Spec::stops),
      mapping_key<Spec>("failures", "none", "hosts that fail in an epoch: per_host_day, at, or both",
                        failure_keys(),
                        [](Spec& spec) -> Failures& { return *(spec.failures = Failures{}); })};
  return keys;
}

bool matches(const VariabilitySpec::DegradedLinks& degraded, const Link& link) {
  return ::fnmatch(degraded.pattern.c_str(), link.name.c_str(), 0) == 0;
}

/// One repetition: the machine as it is from the beginning of the step on, and what happens to it later.
struct Repetition {
  Machine machine;
  Disturbances disturbances;
};

void stop_host(const VariabilitySpec::Stop& stop, const Machine& machine, Disturbances& disturbances) {
  for (std::size_t h = 0; h < machine.hosts.size(); ++h) {
    if (machine.hosts[h].name != stop.host) continue;
    const double until_s = stop.at_s + stop.for_s;
    for (std::size_t d = 0; d < machine.devices.size(); ++d)
      if (machine.devices[d].host == h)
        disturbances.stops.push_back({stop.at_s, static_cast<EndpointId>(d), until_s});
    disturbances.stops.push_back({stop.at_s, static_cast<EndpointId>(machine.devices.size() + h), until_s});
  }
}

/// Steps of the programs that devices compute without waiting for each other: so far chance evens out.
double steps_alone(const Plan& plan) {
  for (const Role& role : plan.roles) {
    bool waits = false;
    for (const Task& task : role.program.get()) {
      if (task.begins_step && waits) return 1;
      waits = waits || task.kind != Task::Kind::compute;
    }
  }
  return plan.steps;
}

/// @param jitter deviation of what a device computes
Repetition repetition_of(const VariabilitySpec& spec, double jitter, const Machine& machine,
                         SeededDice& dice) {
  Repetition one{machine, {}};
  if (jitter > 0) {
    const double sigma = std::sqrt(std::log1p(jitter * jitter));
    for (Device& device : one.machine.devices)
      device.speed /= std::exp(sigma * dice.normal() - sigma * sigma / 2);
  }
  for (const VariabilitySpec::DegradedLinks& degraded : spec.links)
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      if (!matches(degraded, machine.links[l]) || dice.uniform() > degraded.chance) continue;
      double& bandwidth_Bps = one.machine.links[l].bandwidth_Bps;
      if (degraded.at_s)
        one.disturbances.link_changes.push_back(
            {*degraded.at_s, static_cast<LinkId>(l), bandwidth_Bps * degraded.bandwidth});
      else
        bandwidth_Bps *= degraded.bandwidth;
    }
  for (const VariabilitySpec::Stop& stop : spec.stops)
    if (dice.uniform() <= stop.chance) stop_host(stop, machine, one.disturbances);
  return one;
}

struct Spread {
  double mean = 0, deviation = 0;
  std::array<double, 2> range{};
};

Spread spread_of(std::vector<double> values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  for (const double value : values)
    spread.deviation += (value - spread.mean) * (value - spread.mean) / std::max(1.0, count - 1);
  spread.deviation = std::sqrt(spread.deviation);
  std::sort(values.begin(), values.end());
  spread.range = {quantile(values, (1 - level) / 2), quantile(values, (1 + level) / 2)};
  return spread;
}

/// The cost of failures at given times: what was done since the last checkpoint, the wait, and the restart.
double given_s(const VariabilitySpec::Failures& failures, double work_s) {
  double lost_s = 0;
  for (const VariabilitySpec::Failures::Given& given : failures.given)
    if (given.at_s < work_s)
      lost_s += std::fmod(given.at_s, *failures.recovery.every_s) + failures.recovery.wait_s +
                failures.recovery.restart_s;
  return lost_s;
}

/// Failures that all repetitions may draw together, a few seconds of them. Where hosts fail before they reach the next
/// checkpoint, their number grows without bounds, and training would not end.
constexpr double most_drawn_failures = 1e8;

/// Epochs with failures: one is drawn for every repetition, and the expected values are computed.
/// @throws InputError where too many failures would have to be drawn
void add_failures(const VariabilitySpec& spec, double hosts, double work_s, VariabilityResult& result) {
  const VariabilitySpec::Failures& failures = *spec.failures;
  const Faults faults{failures.per_host_s, 1};
  const RunEstimate expected = expected_run(faults, failures.recovery, hosts, work_s);
  if (!(expected.events * static_cast<double>(spec.runs) <= most_drawn_failures))
    throw InputError(failures.pos,
                     fmt::format("variability.failures: a host fails every {}, and from one checkpoint to "
                                 "the next training needs {} "
                                 "without a failure: {:.2g} failures an epoch are expected, in {} "
                                 "repetitions; at most {:.0g} in all "
                                 "are drawn",
                                 format_time(1 / faults.events_per_s(hosts)),
                                 format_time(checkpoint_interval_s(faults, failures.recovery, hosts, work_s) +
                                             failures.recovery.checkpoint_s),
                                 expected.events, spec.runs, most_drawn_failures));
  const double beside_s = given_s(failures, work_s);
  double count = 0;
  for (const VariabilitySpec::Failures::Given& given : failures.given) count += given.at_s < work_s ? 1 : 0;
  result.failures = count;
  std::vector<double> times;
  for (std::int64_t i = 0; i < spec.runs; ++i) {
    const RunEstimate one =
        drawn_run(faults, failures.recovery, hosts, work_s, spec.seed + static_cast<std::uint64_t>(i));
    times.push_back(one.time_s + beside_s);
    result.failures += one.events / static_cast<double>(spec.runs);
  }
  const Spread spread = spread_of(std::move(times));
  result.epoch_time_s = spread.mean;
  result.epoch_time_interval_s = spread.range;
  result.expected_epoch_time_s = expected.time_s + beside_s;
}

}  // namespace

VariabilitySpec read_variability(const YamlNode& node) {
  VariabilitySpec spec;
  read_part(all_variability_keys(), YamlMap(node, "variability"), spec);
  return spec;
}

KeySection variability_keys() {
  return {"variability", "what differs from step to step, and what interrupts training",
          texts_of(all_variability_keys())};
}

namespace {

void require_link(const VariabilitySpec::DegradedLinks& links, const PreparedRun& run) {
  if (std::any_of(run.machine.links.begin(), run.machine.links.end(),
                  [&](const Link& link) { return matches(links, link); }))
    return;
  throw InputError(links.pos,
                   fmt::format("variability.links: the cluster has no link '{}'; its first is '{}' (`convoy "
                               "run --full --json` lists all)",
                               links.pattern, run.machine.links.empty() ? "" : run.machine.links[0].name));
}

/// @param key "variability.stops"
void require_host(const std::string& key, const std::string& name, const SourcePos& pos,
                  const PreparedRun& run) {
  std::vector<std::string> names;
  for (const Host& host : run.machine.hosts) names.push_back(host.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw InputError(pos, fmt::format("{}: the cluster has no host '{}'{}; its first is '{}'", key, name,
                                    suggestion(name, names), names.front()));
}

/// A time within a step requires that steps begin when the one before has ended, and convoy's own links.
void require_single_steps(const std::string& key, const SourcePos& pos, const PreparedRun& run) {
  if (run.plan.service() || run.plan.endless() || run.plan.steps > 1)
    throw InputError(
        pos, fmt::format("{}: is a time in a step, and the steps of this strategy ({}) overlap or differ; "
                         "leave it out, or take one whose steps follow one another",
                         key, run.strategy));
  if (run.network_model == NetworkModel::simgrid)
    throw InputError(pos, fmt::format("{}: cannot be used with --network-model simgrid", key));
}

}  // namespace

void check_variability(const VariabilitySpec& spec, const PreparedRun& run) {
  for (const VariabilitySpec::DegradedLinks& links : spec.links) {
    require_link(links, run);
    if (links.at_s) require_single_steps("variability.links.at", links.at_pos, run);
  }
  for (const VariabilitySpec::Stop& stop : spec.stops) {
    require_host("variability.stops", stop.host, stop.pos, run);
    require_single_steps("variability.stops", stop.pos, run);
  }
  if (!spec.failures) return;
  if (!run.samples)
    throw InputError(spec.failures->pos,
                     "variability.failures: are counted over an epoch: give training.dataset");
  if (run.phased)
    throw InputError(spec.failures->pos,
                     "variability.failures: are counted over an epoch of equal steps, and the steps of this "
                     "strategy change during the run; leave them out");
  for (const VariabilitySpec::Failures::Given& given : spec.failures->given)
    require_host("variability.failures.at", given.host, given.pos, run);
}

VariabilityResult vary(const VariabilitySpec& spec, const PreparedRun& run, const RunResult& result) {
  VariabilityResult varying;
  varying.runs = spec.runs;
  varying.level = level;
  std::vector<double> steps;
  const double alone = steps_alone(run.plan);
  const bool same = spec.jitter == 0 && spec.links.empty() && spec.stops.empty();
  for (std::int64_t i = 0; i < spec.runs; ++i) {
    if (same) {
      steps.push_back(result.step_time_s);
      continue;
    }
    SeededDice dice(spec.seed + static_cast<std::uint64_t>(i));
    const Repetition one = repetition_of(spec, spec.jitter / std::sqrt(alone), run.machine, dice);
    steps.push_back(
        replay(run.plan, one.machine, run.cost, {true, run.network_model, one.disturbances}).step_time_s);
  }
  const Spread step = spread_of(std::move(steps));
  varying.step_time_s = step.mean;
  varying.step_time_interval_s = step.range;
  // Of the phases of a run, the last alone is repeated.
  if (!run.samples || result.global_batch <= 0 || run.phased) return varying;
  const double count = static_cast<double>(*run.samples) / result.global_batch, work_s = count * step.mean;
  if (spec.failures) {
    add_failures(spec, static_cast<double>(run.machine.hosts.size()), work_s, varying);
  } else {
    // The steps of an epoch vary independently, or the means of so many of them.
    const double reaches_s = deviations_at_level * step.deviation * std::sqrt(count * alone);
    varying.epoch_time_s = varying.expected_epoch_time_s = work_s;
    varying.epoch_time_interval_s = {work_s - reaches_s, work_s + reaches_s};
  }
  if (const std::optional<double> usd_per_h = price_usd_per_h(run.machine))
    varying.cost_usd_per_epoch = *varying.epoch_time_s * *usd_per_h / seconds_an_hour;
  return varying;
}

}  // namespace convoy::runs
