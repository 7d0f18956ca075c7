// SPDX-License-Identifier: MIT
#include "sim/planning/setup_bounds.h"

#include <algorithm>
#include <string>

#include "sim/costs/input_pipeline.h"
#include "sim/lowering/jitter.h"
#include "sim/run/search/assess.h"

namespace convoy::inline planning {
namespace {

const std::string& text_at(const YamlNode& mapping, std::string_view key) {
  static const std::string none;
  const YamlNode* value = mapping.find(key);
  return value && value->kind == YamlNode::Kind::scalar ? value->scalar : none;
}

Pace pace_of(const YamlNode& strategy) {
  if (strategy.find("backup_workers")) return Pace::some;
  const std::string& mode = text_at(strategy, "mode");
  return mode == "async" || mode == "ssp" ? Pace::each : Pace::all;
}

}  // namespace

const SetupBounds::Traits& SetupBounds::traits_of(const std::shared_ptr<const YamlNode>& strategy) const {
  const auto [it, fresh] = traits_.try_emplace(strategy);
  if (fresh)
    it->second = {text_at(*strategy, "kind") == "data_parallel" && text_at(*strategy, "shares") != "speed",
                  text_at(*strategy, "sync") == "all_reduce" && !strategy->find("zero"),
                  strategy->find("micro_batches") != nullptr,
                  sums_on_devices(*strategy),
                  pace_of(*strategy),
                  find_bucketing(bucketings_, *strategy)};
  return it->second;
}

/// Of several equal devices that wait for each other by chance (wait_for_the_last) and sum their gradients. Of these
/// there are none before the forward pass is done. Where it is known which bucket has which: from when a bucket is
/// there, it and those after it have to be summed, and the update waits for all of them.
double SetupBounds::summing_s(const Setup& setup, const Traits& traits, const SoloStep& solo,
                              double bandwidth) const {
  const auto& [name, hosts] = setup.order.front();
  const SoloSteps& solos = solos_.at({name, setup.precision});
  const HostWays& ways = solos.ways;
  const double waiting = expected_last(static_cast<std::size_t>(setup.devices), solos.step_jitter);
  const double sum_s_per_byte =
      least_sum_s(ways, 1, static_cast<double>(setup.devices), static_cast<double>(hosts)) / bandwidth;
  double step_s =
      std::max(waiting * solo.running_s, waiting * solo.forward_s + sum_s_per_byte * solos.gradient_bytes);
  if (!traits.bucketing) return step_s;
  const auto bucketing = static_cast<std::int64_t>(*traits.bucketing);
  const double start_s = hosts > 1 ? ways.several_start_s : ways.alone_start_s;
  double bytes = 0, copied_s = 0;
  for (const BucketTimes& bucket : solo.buckets)
    if (bucket.bucketing == bucketing && ways.copies) copied_s += bucket.copy_s;
  const double after_s = copied_s + solo.update_s;
  for (auto bucket = solo.buckets.rbegin(); bucket != solo.buckets.rend(); ++bucket) {
    if (bucket->bucketing != bucketing) continue;
    bytes += bucket->bytes;
    step_s =
        std::max(step_s, waiting * (bucket->ready_s + copied_s + after_s) + start_s + sum_s_per_byte * bytes);
    if (ways.copies) copied_s -= bucket->copy_s;
  }
  return step_s;
}

const std::string& SetupBounds::why_not(const Setup& setup) const {
  static const std::string can_run;
  for (const auto& [name, count] : setup.order)
    if (!solo_step(solos_, name, setup)) return solos_.at({name, setup.precision}).message;
  return can_run;
}

/// The cost table knows the first type of a server's devices: a common step is no shorter than theirs, and
/// the others may be any number of times faster.
Trial SetupBounds::bound(const Setup& setup, double bandwidth) const {
  Trial trial;
  const Traits& traits = traits_of(setup.strategy);
  double hosts_w = 0, devices_j = 0, slowest_s = 0, devices = 0, steps_per_s = 0;
  for (const auto& [name, count] : setup.order) {
    const SoloStep* const found = solo_step(solos_, name, setup);
    if (!found) {
      trial.state = TrialState::cannot_run;
      return trial;
    }
    if (!traits.whole_network) continue;
    const SoloStep& solo = *found;
    const ServerSpec& server = servers_.at(name);
    const bool whole = traits.keeps_all_states;
    double step_s = std::max(0.0, solo.step_s - (whole ? 0 : solo.update_s));
    if (traits.sums_on_devices && setup.order.size() == 1 && server.devices.size() == 1 && setup.devices > 1)
      step_s = std::max(step_s, summing_s(setup, traits, solo, bandwidth));
    const auto of_kind = static_cast<double>(count * server.device_count());
    slowest_s = std::max(slowest_s, step_s);
    devices += of_kind;
    steps_per_s += of_kind / (server.devices.size() == 1 ? step_s : 0);
    hosts_w += solo.host_power_w * static_cast<double>(count);
    if (whole) devices_j += solo.device_energy_j * static_cast<double>(count * server.devices.front().second);
    if (whole && !traits.accumulates && !solo.fits) {
      trial.state = TrialState::too_large;
      trial.peak_memory_bytes = solo.peak_memory_bytes;
    }
  }
  if (traits.pace == Pace::all && slowest_s > 0) {
    if (spec_.input) trial.input_step_s = waited_for_s(setup, *spec_.input);
    trial.step_s = std::max(slowest_s, trial.input_step_s);
  } else if (traits.pace == Pace::each && devices > 0)
    trial.step_s = devices / steps_per_s * (1 - measurements_differ);
  trial.energy_j =
      hosts_w * trial.step_s + devices_j * (traits.pace == Pace::all ? 1 : 1 - measurements_differ);
  return trial;
}

double SetupBounds::waited_for_s(const Setup& setup, const InputSpec& input) const {
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

}  // namespace convoy::planning
