// SPDX-License-Identifier: MIT
#include "sim/planning/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/names.h"
#include "sim/costs/input_pipeline.h"
#include "sim/planning/interval.h"
#include "sim/results/field_text.h"
#include "sim/run/out_of_resources.h"
#include "sim/run/search/assess.h"
#include "sim/run/search/try_out.h"
#include "sim/run/workers.h"

namespace convoy::inline planning {
namespace {

constexpr auto solo_fields = [](auto& archive, auto& solo) {
  archive.field("batch", solo.batch);
  archive.field("step_s", solo.step_s);
  archive.field("update_s", solo.update_s);
  archive.field("device_energy_j", solo.device_energy_j);
  archive.field("host_power_w", solo.host_power_w);
  archive.field("peak_memory_bytes", solo.peak_memory_bytes);
  archive.field("fits", solo.fits);
};

constexpr auto solos_fields = [](auto& archive, auto& solos) {
  archive.list("steps", solos.steps, solo_fields);
};

/// @param share of a device's memory that may be used
bool fits_in(const Assessment& assessment, double share) {
  return assessment.fits && assessment.peak_bytes <= share * assessment.fullest_size_bytes;
}

double update_s(const PreparedRun& run) {
  double seconds = 0;
  const DeviceType& device = run.machine.device_types[run.machine.devices[0].type];
  for (const Operation& operation : run.graph->operations)
    if (operation.phase == Phase::update) seconds += run.cost.time_s(operation.work, 1, device);
  return seconds / run.machine.devices[0].speed;
}

/// Alone on the first device of one server.
Setup solo_setup(const std::string& server, Precision precision, std::int64_t batch) {
  return {{{server, 1}}, precision, batch, 1, batch, parse_yaml("{kind: single}", "single")};
}

Point solo_point(const PlanSpec& spec, const Setup& setup) {
  Point point = point_of(spec, setup);
  point.cluster.entries.emplace_back("devices_per_node", parse_yaml("1", "devices_per_node"));
  return point;
}

SoloStep solo_step_of(PreparedRun run, std::int64_t batch, double share) {
  run.plan.input.reset();  // a whole host has more devices to make images ready for
  const Assessment assessment = assess(run);
  const double host_w = run.machine.host_types[run.machine.hosts[0].type].host_power_w;
  return {batch,
          assessment.step_bound_s,
          update_s(run),
          assessment.energy_bound_j - host_w * assessment.step_bound_s,
          host_w,
          assessment.peak_bytes,
          fits_in(assessment, share)};
}

/// Images a device that are tried where the plan names none, in order: powers of two, and what comes to a batch
/// that the goal's table has runs of.
std::vector<std::int64_t> tried_batches(const PlanSpec& spec, const ServerSpec& server) {
  std::set<std::int64_t> batches;
  for (std::int64_t batch = 1; batch <= largest_tried_batch; batch *= 2) batches.insert(batch);
  for (const double run : spec.goal.batches())
    for (const std::int64_t nodes : spec.nodes) {
      constexpr double most_images = 1e15;  // of which a double has all digits
      if (run < 1 || run > most_images || run != std::floor(run)) continue;
      const auto global = static_cast<std::int64_t>(run);
      const std::int64_t devices = nodes * server.device_count();
      if (global % devices == 0 && global / devices <= largest_tried_batch) batches.insert(global / devices);
    }
  return {batches.begin(), batches.end()};
}

const std::string& text_at(const YamlNode& mapping, std::string_view key) {
  static const std::string none;
  const YamlNode* value = mapping.find(key);
  return value && value->kind == YamlNode::Kind::scalar ? value->scalar : none;
}

/// A replica a device, that runs the whole network on the device's images and is there all the step.
bool runs_whole_network(const YamlNode& strategy) { return text_at(strategy, "kind") == "data_parallel"; }

/// Nothing of a replica's memory or update lies elsewhere.
bool keeps_all_states(const YamlNode& strategy) {
  return text_at(strategy, "sync") == "all_reduce" && !strategy.find("zero");
}

/// Whose steps make up a step of the training.
enum class Pace : std::uint8_t {
  all,   ///< everybody's, who take one step together: it takes as long as the slowest
  each,  ///< everybody's, each at its own pace: rates add up
  some,  ///< those of the first that are done
};

Pace pace_of(const YamlNode& strategy) {
  if (strategy.find("backup_workers")) return Pace::some;
  const std::string& mode = text_at(strategy, "mode");
  return mode == "async" || mode == "ssp" ? Pace::each : Pace::all;
}

}  // namespace

Trials::Trials(const PlanSpec& spec, std::size_t jobs, Progress progress)
    : spec_(spec), jobs_(jobs), progress_(std::move(progress)) {
  read_servers();
  fill_cost_table();
  space_ = enumerate(spec_, servers_, [this](const std::string& server, Precision precision) {
    return batches_of(server, precision);
  });
  trials_.resize(space_.setups.size());
  for (std::size_t s = 0; s < trials_.size(); ++s) bound(s);
}

Trials Trials::with(const WhatIf& change) const {
  Trials other = *this;
  other.change_ = change;
  const double least = 1 / std::max(1.0, change.compute);
  for (std::size_t s = 0; s < trials_.size(); ++s) {
    other.trials_[s] = {};
    other.bound(s);
    other.trials_[s].step_s = std::max(other.trials_[s].step_s * least, other.trials_[s].input_step_s);
    other.trials_[s].energy_j *= least;
  }
  other.planned_ = other.simulated_ = 0;
  return other;
}

void Trials::read_servers() {
  const std::vector<std::string>& providers = spec_.constraints.providers;
  for (const std::string& name : spec_.servers) {
    if (!providers.empty() &&
        std::none_of(providers.begin(), providers.end(),
                     [&](const std::string& provider) { return name.starts_with(provider + "-"); }))
      continue;
    ServerSpec server = spec_.own_servers.contains(name)
                            ? read_cluster(cluster_node(spec_, {{name, 1}})).servers.front()
                            : load_server(name, spec_.goal.pos());
    if (spec_.all_servers && !has_price(spec_, server)) continue;
    servers_.emplace(name, std::move(server));
  }
  if (servers_.empty())
    throw InputError(
        providers.empty() ? spec_.markets_pos : spec_.constraints.providers_pos,
        providers.empty()
            ? "plan.market: no server has a price there; add on_demand, or give --prices that have one"
            : fmt::format(
                  "plan.constraints.providers: none of plan.servers with a price is of {}; add others, "
                  "or leave out one of the two",
                  list_of(providers)));
}

void Trials::fill_cost_table() {
  std::vector<std::pair<std::string, Precision>> items;
  for (const auto& [name, server] : servers_)
    for (const Precision precision : spec_.precisions) items.emplace_back(name, precision);
  // What all processes need is read once, here.
  preparer_.prepare(solo_point(spec_, solo_setup(items[0].first, Precision::fp32, 1)), nullptr, {},
                    Detail::step);
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    const auto& [name, precision] = items[i];
    SoloSteps solos;
    const bool given = !spec_.batches.empty();
    for (const std::int64_t batch : given ? spec_.batches : tried_batches(spec_, servers_.at(name))) {
      PreparedRun run =
          preparer_.prepare(solo_point(spec_, solo_setup(name, precision, batch)), nullptr, {}, Detail::step);
      solos.steps.push_back(solo_step_of(std::move(run), batch, spec_.constraints.memory));
      if (!given && !solos.steps.back().fits) break;
    }
    return [bytes = to_text(solos, solos_fields)] { return bytes; };
  };
  std::size_t done = 0;
  run_in_workers(items.size(), jobs_, work, [&](std::size_t i, WorkerAnswer answer) {
    progress_("measuring servers", ++done, items.size());
    if (answer.kind == WorkerAnswer::Kind::done)
      solo_[items[i]] = from_text<SoloSteps>(answer.bytes, solos_fields);
    else
      solo_[items[i]].message = std::move(answer.bytes);
  });
}

std::vector<std::int64_t> Trials::batches_of(const std::string& server, Precision precision) const {
  if (!spec_.batches.empty()) return spec_.batches;
  std::vector<std::int64_t> batches;
  for (const SoloStep& solo : solo_.at({server, precision}).steps)
    if (solo.fits) batches.push_back(solo.batch);
  if (batches.empty()) batches.push_back(1);  // says why it cannot be
  return batches;
}

/// Nothing where the server does not run the setup's precision.
const SoloStep* Trials::solo_step(const std::string& server, const Setup& setup) const {
  const std::vector<SoloStep>& steps = solo_.at({server, setup.precision}).steps;
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const SoloStep& solo) { return solo.batch == setup.batch_per_device; });
  return found == steps.end() ? nullptr : &*found;
}

/// The cost table knows the first type of a server's devices: a common step is no shorter than theirs, and
/// the others may be any number of times faster.
void Trials::bound(std::size_t s) {
  const Setup& setup = space_.setups[s];
  Trial& trial = trials_[s];
  double hosts_w = 0, devices_j = 0, slowest_s = 0, devices = 0, steps_per_s = 0;
  for (const auto& [name, count] : setup.order) {
    const SoloStep* const found = solo_step(name, setup);
    if (!found) {
      trial.state = TrialState::cannot_run;
      trial.message = solo_.at({name, setup.precision}).message;
      return;
    }
    if (!runs_whole_network(setup.strategy) || text_at(setup.strategy, "shares") == "speed") continue;
    const SoloStep& solo = *found;
    const ServerSpec& server = servers_.at(name);
    const bool whole = keeps_all_states(setup.strategy);
    const double step_s = std::max(0.0, solo.step_s - (whole ? 0 : solo.update_s));
    const auto of_kind = static_cast<double>(count * server.device_count());
    slowest_s = std::max(slowest_s, step_s);
    devices += of_kind;
    steps_per_s += of_kind / (server.devices.size() == 1 ? step_s : 0);
    hosts_w += solo.host_power_w * static_cast<double>(count);
    if (whole) devices_j += solo.device_energy_j * static_cast<double>(count * server.devices.front().second);
    if (whole && !setup.strategy.find("micro_batches") && !solo.fits) {
      trial.state = TrialState::too_large;
      trial.peak_memory_bytes = solo.peak_memory_bytes;
    }
  }
  const Pace pace = pace_of(setup.strategy);
  if (pace == Pace::all && slowest_s > 0) {
    if (spec_.input) trial.input_step_s = waited_for_s(setup, *spec_.input);
    trial.step_s = std::max(slowest_s, trial.input_step_s);
  } else if (pace == Pace::each && devices > 0)
    trial.step_s = devices / steps_per_s * (1 - measurements_differ);
  trial.energy_j = hosts_w * trial.step_s + devices_j * (pace == Pace::all ? 1 : 1 - measurements_differ);
}

double Trials::waited_for_s(const Setup& setup, const InputSpec& input) const {
  if (input.synthetic) return 0;
  double longest_s = 0;
  for (const auto& [name, count] : setup.order) {
    const ServerSpec& server = servers_.at(name);
    if (server.host.vcpus == 0) continue;
    const auto devices = static_cast<std::uint32_t>(server.device_count());
    const double images = static_cast<double>(setup.batch_per_device) * devices;
    longest_s = std::max(longest_s, images / input_rate(input, server.host, devices).images_per_s);
  }
  return longest_s;
}

TryOut& Trials::try_out() {
  if (!try_out_.of)
    try_out_.of = std::make_unique<TryOut>(jobs_, [this](std::size_t s, Detail detail) {
      return preparer_.prepare(point_of(spec_, space_.setups[s]), nullptr, change_, detail);
    });
  return *try_out_.of;
}

void Trials::plan(const std::vector<std::size_t>& setups) {
  try_out().plan(setups, [&](std::size_t place, Tried<Assessment> tried) {
    progress_("planning candidates", ++planned_, trials_.size());
    Trial& trial = trials_[setups[place]];
    trial.planned = true;
    if (tried.failed(trial)) return;
    const Assessment& assessment = *tried.value;
    trial.state = fits_in(assessment, spec_.constraints.memory) ? TrialState::planned : TrialState::too_large;
    trial.step_s = std::max(trial.step_s, assessment.step_bound_s);
    trial.input_step_s = std::max(trial.input_step_s, assessment.input_step_s);
    trial.energy_j = std::max(trial.energy_j, assessment.energy_bound_j);
    trial.peak_memory_bytes = assessment.peak_bytes;
  });
}

std::vector<SearchSpace::Record> Trials::simulate(const std::vector<std::size_t>& setups) {
  auto outputs = std::make_shared<std::vector<Tried<RunOutput>>>(try_out().simulate(setups, Detail::step));
  std::vector<SearchSpace::Record> records;
  for (std::size_t item = 0; item < setups.size(); ++item)
    records.push_back([this, outputs, item, s = setups[item]] { record(s, (*outputs)[item]); });
  return records;
}

void Trials::record(std::size_t s, Tried<RunOutput>& tried) {
  progress_("simulating candidates", ++simulated_, trials_.size());
  Trial& trial = trials_[s];
  if (tried.failed(trial)) return;
  const RunResult& result = tried.value->result;
  trial.state = TrialState::simulated;
  trial.bound_step_s = trial.step_s, trial.bound_energy_j = trial.energy_j;
  trial.step_s = result.step_time_s;
  trial.energy_j = result.energy_j;
  trial.peak_memory_bytes = result.peak_memory_bytes;
  trial.bottleneck = result.bottleneck.text;
}

void Trials::simulate_in_full(std::vector<std::size_t> setups) {
  std::sort(setups.begin(), setups.end());
  setups.erase(std::unique(setups.begin(), setups.end()), setups.end());
  std::erase_if(setups, [&](std::size_t s) { return trials_[s].in_full; });
  const std::vector<Tried<RunOutput>> outputs = try_out().simulate(setups, Detail::all);
  for (std::size_t i = 0; i < setups.size(); ++i) {
    Trial& trial = trials_[setups[i]];
    if (!outputs[i].value)  // its step could be simulated, in less memory
      throw OutOfResources(fmt::format("the interval of {}, {} images a device: {}",
                                       text_of(space_.setups[setups[i]].order),
                                       space_.setups[setups[i]].batch_per_device, outputs[i].message));
    const RunResult& result = outputs[i].value->result;
    std::tie(trial.step_low, trial.step_high) = step_interval(result);
    trial.own_interval = result.interval.has_value();
    trial.label = result.algorithms.empty()
                      ? result.strategy
                      : fmt::format("{} ({})", result.strategy, fmt::join(result.algorithms, ", "));
    trial.in_full = true;
  }
}

}  // namespace convoy::planning
