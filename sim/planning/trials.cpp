// SPDX-License-Identifier: MIT
#include "sim/planning/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/base/names.h"
#include "sim/planning/interval.h"
#include "sim/run/search/assess.h"
#include "sim/run/workers.h"

namespace convoy::inline planning {
namespace {

/// Plain numbers followed by a text, as bytes between processes of this program.
template <class Numbers>
std::string packed(const Numbers& numbers, const std::string& text) {
  return std::string(reinterpret_cast<const char*>(&numbers), sizeof numbers) + text;
}

template <class Numbers>
std::pair<Numbers, std::string> unpacked(const std::string& bytes) {
  Numbers numbers;
  std::memcpy(&numbers, bytes.data(), sizeof numbers);
  return {numbers, bytes.substr(sizeof numbers)};
}

struct SoloNumbers {
  double step_s, update_s, device_energy_j, host_power_w, peak_bytes;
  std::int64_t batch, fits;
};

/// @param share of a device's memory that may be used
bool fits_in(const Assessment& assessment, double share) {
  return assessment.fits && assessment.peak_bytes <= share * assessment.fullest_size_bytes;
}

struct TrialNumbers {
  Trial::State state;
  double step_s, energy_j, peak_bytes, compute_s, low, high;
  std::size_t label_size;
};

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

SoloNumbers solo_numbers(const PreparedRun& run, std::int64_t batch, double share) {
  const Assessment assessment = assess(run);
  const double host_w = run.machine.host_types[run.machine.hosts[0].type].host_power_w;
  return {assessment.step_bound_s,
          update_s(run),
          assessment.energy_bound_j - host_w * assessment.step_bound_s,
          host_w,
          assessment.peak_bytes,
          batch,
          fits_in(assessment, share)};
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
    other.trials_[s].step_s *= least;
    other.trials_[s].energy_j *= least;
  }
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
  preparer_.prepare(solo_point(spec_, solo_setup(items[0].first, Precision::fp32, 1)), nullptr);
  const FirstHalf work = [&](std::size_t i) -> SecondHalf {
    const auto& [name, precision] = items[i];
    std::string bytes;
    const bool given = !spec_.batches.empty();
    for (std::size_t b = 0; given ? b < spec_.batches.size() : (std::int64_t{1} << b) <= largest_tried_batch;
         ++b) {
      const std::int64_t batch = given ? spec_.batches[b] : std::int64_t{1} << b;
      const PreparedRun run =
          preparer_.prepare(solo_point(spec_, solo_setup(name, precision, batch)), nullptr);
      const SoloNumbers numbers = solo_numbers(run, batch, spec_.constraints.memory);
      bytes += packed(numbers, "");
      if (!given && !numbers.fits) break;
    }
    return [bytes] { return bytes; };
  };
  std::size_t done = 0;
  run_in_workers(items.size(), jobs_, work, [&](std::size_t i, WorkerAnswer answer) {
    progress_("measuring servers", ++done, items.size());
    const auto& [name, precision] = items[i];
    if (answer.kind != WorkerAnswer::Kind::done) {
      solo_[{name, precision, 0}].message = answer.bytes;
      return;
    }
    for (std::size_t at = 0; at < answer.bytes.size(); at += sizeof(SoloNumbers)) {
      const SoloNumbers n = unpacked<SoloNumbers>(answer.bytes.substr(at)).first;
      solo_[{name, precision, n.batch}] = {
          n.step_s, n.update_s, n.device_energy_j, n.host_power_w, n.peak_bytes, n.fits != 0, true, {}};
    }
  });
}

std::vector<std::int64_t> Trials::batches_of(const std::string& server, Precision precision) const {
  if (!spec_.batches.empty()) return spec_.batches;
  std::vector<std::int64_t> batches;
  for (const auto& [key, solo] : solo_)
    if (std::get<0>(key) == server && std::get<1>(key) == precision && solo.runs && solo.fits)
      batches.push_back(std::get<2>(key));
  if (batches.empty()) batches.push_back(1);  // says why it cannot be
  return batches;
}

void Trials::bound(std::size_t s) {
  const Setup& setup = space_.setups[s];
  Trial& trial = trials_[s];
  double hosts_w = 0, devices_j = 0;
  for (const auto& [name, count] : setup.order) {
    const auto found = solo_.find({name, setup.precision, setup.batch_per_device});
    if (found == solo_.end()) {
      trial.state = Trial::State::cannot_run;
      trial.message = solo_[{name, setup.precision, 0}].message;
      return;
    }
    if (!runs_whole_network(setup.strategy) || text_at(setup.strategy, "shares") == "speed") continue;
    const SoloStep& solo = found->second;
    const bool whole = keeps_all_states(setup.strategy);
    trial.step_s = std::max(trial.step_s, solo.step_s - (whole ? 0 : solo.update_s));
    hosts_w += solo.host_power_w * static_cast<double>(count);
    if (whole)
      devices_j += solo.device_energy_j * static_cast<double>(count * servers_.at(name).device_count());
    if (whole && !setup.strategy.find("micro_batches") && !solo.fits) {
      trial.state = Trial::State::too_large;
      trial.peak_memory_bytes = solo.peak_memory_bytes;
    }
  }
  trial.energy_j = hosts_w * trial.step_s + devices_j;
}

void Trials::run(std::span<const std::size_t> setups, const Hopeless& hopeless) {
  const double share = spec_.constraints.memory;
  const FirstHalf work = [&](std::size_t item) -> SecondHalf {
    const std::size_t s = setups[item];
    auto run = std::make_shared<const PreparedRun>(
        preparer_.prepare(point_of(spec_, space_.setups[s]), nullptr, change_));
    return [run, s, share, &hopeless] {
      const Assessment assessment = assess(*run);
      const std::string label = run->algorithms.empty()
                                    ? run->strategy
                                    : fmt::format("{} ({})", run->strategy, fmt::join(run->algorithms, ", "));
      const bool fits = fits_in(assessment, share);
      if (!fits || hopeless(s, assessment.step_bound_s, assessment.energy_bound_j))
        return packed(
            TrialNumbers{fits ? Trial::State::planned : Trial::State::too_large, assessment.step_bound_s,
                         assessment.energy_bound_j, assessment.peak_bytes, 0, 1, 1, label.size()},
            label);
      const RunResult result = simulate(*run, false).result;
      const auto [low, high] = step_interval(result);
      return packed(TrialNumbers{Trial::State::simulated, result.step_time_s, result.energy_j,
                                 result.peak_memory_bytes, result.compute_s, low, high, label.size()},
                    label + result.bottleneck.text);
    };
  };
  run_in_workers(setups.size(), jobs_, work, [&](std::size_t item, WorkerAnswer answer) {
    progress_("simulating candidates", ++tried_, trials_.size());
    Trial& trial = trials_[setups[item]];
    if (answer.kind != WorkerAnswer::Kind::done) {
      trial.state =
          answer.kind == WorkerAnswer::Kind::failed ? Trial::State::failed : Trial::State::cannot_run;
      trial.message = std::move(answer.bytes);
      return;
    }
    const auto [n, text] = unpacked<TrialNumbers>(answer.bytes);
    const bool exact = n.state == Trial::State::simulated;
    trial.state = n.state;
    trial.step_s = exact ? n.step_s : std::max(trial.step_s, n.step_s);
    trial.energy_j = exact ? n.energy_j : std::max(trial.energy_j, n.energy_j);
    trial.peak_memory_bytes = n.peak_bytes;
    trial.compute_s = n.compute_s;
    trial.step_low = n.low, trial.step_high = n.high;
    trial.label = text.substr(0, n.label_size);
    trial.bottleneck = text.substr(n.label_size);
  });
}

}  // namespace convoy::planning
