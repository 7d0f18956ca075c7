// SPDX-License-Identifier: MIT
#include "sim/run/variability.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "sim/base/names.h"
#include "sim/base/yaml_map.h"
#include "sim/replay/replay.h"
#include "sim/run/dice.h"
#include "sim/run/evaluate.h"
#include "sim/run/simulate.h"

namespace convoy {
namespace {

constexpr double level = 0.8, deviations_at_level = 1.2815515655446004;  // of a normal distribution
constexpr double seconds_a_day = 86400, seconds_an_hour = 3600;

double share_of(YamlMap& map, std::string_view key, double otherwise) {
  const double share = map.quantity_or(key, Dimension::fraction, otherwise, false);
  if (share > 1) map.fail(key, "is a share; at most 100% is allowed");
  return share;
}

VariabilitySpec::DegradedLinks read_links(const YamlNode& node) {
  YamlMap map(node, "variability.links");
  VariabilitySpec::DegradedLinks links;
  links.pos = map.pos("link");
  links.pattern = read_text(map.node("link"), map.path_of("link"));
  links.bandwidth = map.quantity("bandwidth", Dimension::fraction, true);
  if (links.bandwidth > 1) map.fail("bandwidth", "is what a degraded link has left; at most 100% is allowed");
  links.chance = share_of(map, "chance", 1);
  if (map.find("at")) links.at_s = map.quantity("at", Dimension::time, false);
  links.at_pos = map.pos("at");
  map.finish();
  return links;
}

VariabilitySpec::Stop read_stop(const YamlNode& node) {
  YamlMap map(node, "variability.stops");
  VariabilitySpec::Stop stop;
  stop.pos = map.pos("host");
  stop.host = read_text(map.node("host"), map.path_of("host"));
  stop.at_s = map.quantity("at", Dimension::time, false);
  stop.for_s = map.quantity("for", Dimension::time, true);
  stop.chance = share_of(map, "chance", 1);
  map.finish();
  return stop;
}

VariabilitySpec::Failures::Given read_failure(const YamlNode& node) {
  YamlMap map(node, "variability.failures.at");
  VariabilitySpec::Failures::Given given;
  given.pos = map.pos("host");
  given.host = read_text(map.node("host"), map.path_of("host"));
  given.at_s = map.quantity("at", Dimension::time, false);
  map.finish();
  return given;
}

VariabilitySpec::Failures read_failures(YamlMap map, const SourcePos& pos) {
  VariabilitySpec::Failures failures;
  failures.pos = pos;
  if (map.find("per_host_day")) failures.per_host_s = map.number("per_host_day", 0) / seconds_a_day;
  if (const YamlNode* list = map.find("at")) {
    if (list->kind != YamlNode::Kind::sequence || list->items.empty())
      map.fail("at", "expected a list such as [{host: n0, at: 2h}]");
    for (const YamlNode& item : list->items) failures.given.push_back(read_failure(item));
  }
  if (failures.per_host_s == 0 && failures.given.empty())
    throw InputError(pos, "variability.failures: give per_host_day, at, or both");
  failures.recovery.wait_s = map.quantity_or("wait", Dimension::time, 0, false);
  failures.recovery.restart_s = map.quantity_or("restart", Dimension::time, 0, false);
  YamlMap checkpoint = map.map("checkpoint");
  failures.recovery.checkpoint_s = checkpoint.quantity("time", Dimension::time, false);
  failures.recovery.every_s = checkpoint.quantity("every", Dimension::time, true);
  checkpoint.finish();
  map.finish();
  return failures;
}

bool matches(const VariabilitySpec::DegradedLinks& degraded, const Link& link) {
  return ::fnmatch(degraded.pattern.c_str(), link.name.c_str(), 0) == 0;
}

/// One repetition: the machine as it is from the step's beginning on, and what happens to it then.
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

Repetition repetition_of(const VariabilitySpec& spec, const Machine& machine, SeededDice& dice) {
  Repetition one{machine, {}};
  if (spec.jitter > 0) {
    const double sigma = std::sqrt(std::log1p(spec.jitter * spec.jitter));
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

/// What the failures at given times cost: what was done since the last checkpoint, the wait, the restart.
double given_s(const VariabilitySpec::Failures& failures, double work_s) {
  double lost_s = 0;
  for (const VariabilitySpec::Failures::Given& given : failures.given)
    if (given.at_s < work_s)
      lost_s += std::fmod(given.at_s, *failures.recovery.every_s) + failures.recovery.wait_s +
                failures.recovery.restart_s;
  return lost_s;
}

/// Epochs with failures: one drawn for every repetition, and what is to be expected.
void add_failures(const VariabilitySpec& spec, double hosts, double work_s, VariabilityResult& result) {
  const VariabilitySpec::Failures& failures = *spec.failures;
  const Faults faults{failures.per_host_s, 1};
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
  result.expected_epoch_time_s = expected_run(faults, failures.recovery, hosts, work_s).time_s + beside_s;
}

}  // namespace

VariabilitySpec read_variability(const YamlNode& node) {
  YamlMap map(node, "variability");
  VariabilitySpec spec;
  spec.runs = map.integer_or("runs", 20, 1, 1'000'000);
  spec.seed = static_cast<std::uint64_t>(map.integer_or("seed", 1, 0, 1'000'000'000));
  spec.jitter = share_of(map, "jitter", 0);
  if (const YamlNode* list = map.find("links")) {
    if (list->kind != YamlNode::Kind::sequence || list->items.empty())
      map.fail("links", "expected a list such as [{link: 'n0.nic*', bandwidth: 50%}]");
    for (const YamlNode& item : list->items) spec.links.push_back(read_links(item));
  }
  if (const YamlNode* list = map.find("stops")) {
    if (list->kind != YamlNode::Kind::sequence || list->items.empty())
      map.fail("stops", "expected a list such as [{host: n0, at: 100ms, for: 2s}]");
    for (const YamlNode& item : list->items) spec.stops.push_back(read_stop(item));
  }
  if (map.find("failures")) spec.failures = read_failures(map.map("failures"), map.pos("failures"));
  map.finish();
  return spec;
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

/// A time in a step needs steps that begin when the one before has ended, and convoy's own links.
void require_single_steps(const std::string& key, const SourcePos& pos, const PreparedRun& run) {
  if (run.plan.service || run.plan.endless)
    throw InputError(pos, fmt::format("{}: is a time in a step, and the steps of this strategy ({}) overlap; "
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
  for (const VariabilitySpec::Failures::Given& given : spec.failures->given)
    require_host("variability.failures.at", given.host, given.pos, run);
}

VariabilityResult vary(const VariabilitySpec& spec, const PreparedRun& run, const RunResult& result) {
  VariabilityResult varying;
  varying.runs = spec.runs;
  varying.level = level;
  std::vector<double> steps;
  const bool same = spec.jitter == 0 && spec.links.empty() && spec.stops.empty();
  for (std::int64_t i = 0; i < spec.runs; ++i) {
    if (same) {
      steps.push_back(result.step_time_s);
      continue;
    }
    SeededDice dice(spec.seed + static_cast<std::uint64_t>(i));
    const Repetition one = repetition_of(spec, run.machine, dice);
    steps.push_back(
        replay(run.plan, one.machine, run.cost, {true, run.network_model, one.disturbances}).step_time_s);
  }
  const Spread step = spread_of(std::move(steps));
  varying.step_time_s = step.mean;
  varying.step_time_interval_s = step.range;
  if (!run.samples || result.global_batch <= 0) return varying;
  const double count = static_cast<double>(*run.samples) / result.global_batch, work_s = count * step.mean;
  if (spec.failures) {
    add_failures(spec, static_cast<double>(run.machine.hosts.size()), work_s, varying);
  } else {
    // The steps of an epoch vary independently.
    const double reaches_s = deviations_at_level * step.deviation * std::sqrt(count);
    varying.epoch_time_s = varying.expected_epoch_time_s = work_s;
    varying.epoch_time_interval_s = {work_s - reaches_s, work_s + reaches_s};
  }
  if (const std::optional<double> usd_per_h = price_usd_per_h(run.machine))
    varying.cost_usd_per_epoch = *varying.epoch_time_s * *usd_per_h / seconds_an_hour;
  return varying;
}

}  // namespace convoy
