// SPDX-License-Identifier: MIT
#include "sim/run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>

#include "sim/base/quantity.h"
#include "sim/costs/kernel_layout.h"
#include "sim/costs/residuals.h"
#include "sim/plan/process_memory.h"
#include "sim/replay/input_queue.h"
#include "sim/results/classes.h"
#include "sim/run/bottleneck.h"
#include "sim/run/energy.h"
#include "sim/run/memory_need.h"
#include "sim/run/warnings.h"

namespace convoy::inline runs {
namespace {

/// Nothing is busy for longer than the step lasts. The time in which a device computes and that in which it
/// waits for its messages fit into the step (the rest is idle time); while it computes, it can wait for its
/// host at most for that time; and cables are not busy for longer either. Anything that violates this counts
/// some time twice, which is a mistake of the replay.
/// @throws std::logic_error
void require_conserved_time(const Machine& machine, const ReplayResult& replayed) {
  // The engine treats moments less than 1e-12 s apart as one; a step has up to millions of them.
  const double step_s = replayed.step_time_s, longest_s = step_s * (1 + 1e-7) + 1e-9;
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    const EndpointUsage usage = replayed.endpoints[d];
    if (usage.compute_s < 0 || usage.exposed_comm_s < 0 || usage.compute_s + usage.exposed_comm_s > longest_s)
      throw std::logic_error(
          fmt::format("{} computes for {} s and waits for messages for {} s of a step of {} s",
                      machine.devices[d].name, usage.compute_s, usage.exposed_comm_s, step_s));
    if (usage.issue_wait_s < 0 || usage.issue_wait_s > usage.compute_s * (1 + 1e-7) + 1e-9)
      throw std::logic_error(fmt::format("{} waits for its host for {} s of {} s of computing",
                                         machine.devices[d].name, usage.issue_wait_s, usage.compute_s));
  }
  for (std::size_t p = 0; p < replayed.port_busy_s.size(); ++p)
    if (replayed.port_busy_s[p] < 0 || replayed.port_busy_s[p] > longest_s)
      throw std::logic_error(fmt::format("cable {} of {} is busy for {} s of a step of {} s", p, machine.name,
                                         replayed.port_busy_s[p], step_s));
}

/// The device that finishes last; of several, the busiest; of several of these, the first.
std::size_t critical_device(const ReplayResult& replayed, std::size_t devices) {
  std::size_t critical = 0;
  for (std::size_t d = 1; d < devices; ++d) {
    const EndpointUsage a = replayed.endpoints[d], b = replayed.endpoints[critical];
    if (a.end_s > b.end_s || (a.end_s == b.end_s && a.compute_s > b.compute_s)) critical = d;
  }
  return critical;
}

/// A warning; empty: the mean is known as well as is said of all (sim/replay/steady_state.h).
std::string measured_roughly_text(double doubt) {
  constexpr double told = 0.01;
  if (doubt <= told) return {};
  return fmt::format(
      "the mean of the workers' steps is known to {:.1f} % only (half of its 95 % interval): it varies too "
      "much for what is simulated",
      100 * doubt);
}

/// A process that is too large is what ends a run, whatever else slows it down.
void fill_process(const PreparedRun& run, const ReplayResult& replayed, RunResult& result) {
  const std::vector<ProcessMemory> memories =
      process_memories(run.plan, run.machine, run.graph->options,
                       [&](std::size_t d) { return replayed.endpoints[d].peak_memory_bytes; });
  const auto fullest =
      std::max_element(memories.begin(), memories.end(),
                       [](const ProcessMemory& a, const ProcessMemory& b) { return a.share() < b.share(); });
  if (fullest == memories.end()) return;
  result.process_memory_bytes = fullest->bytes;
  result.fits = fullest->fits();
  const Device& device = run.machine.devices[static_cast<std::size_t>(fullest - memories.begin())];
  if (std::string warning = tight_text(device.name, run.machine.device_types[device.type], *fullest,
                                       run.graph->options.framework);
      !warning.empty())
    result.warnings.push_back(std::move(warning));
  if (result.fits || result.bottleneck.kind == "memory") return;
  result.bottleneck = {"memory", device.name, fullest->share(), too_large_text(device.name, *fullest)};
}

void fill_devices(const PreparedRun& run, const ReplayResult& replayed, RunResult& result) {
  const Machine& machine = run.machine;
  const std::vector<double> power_w = busy_power_w(run.plan, machine, run.cost);
  result.energy_j = step_energy_j(machine, replayed.step_time_s, power_w,
                                  [&](std::size_t d) { return replayed.endpoints[d].running_s(); });
  double total_s = 0, longest_s = 0, fullest_share = -1;
  EntryList<DeviceResult> entries(result.per_device, run.by_class, machine.devices.size());
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    const EndpointUsage usage = replayed.endpoints[d];
    const DeviceType& type = machine.device_types[machine.devices[d].type];
    const double energy_j = device_energy_j(type, power_w[d], usage.running_s(), replayed.step_time_s);
    entries.add(machine.devices[d].name, {{},
                                          usage.compute_s,
                                          usage.sent_bytes,
                                          usage.received_bytes,
                                          usage.peak_memory_bytes,
                                          energy_j,
                                          usage.memory_at_peak});
    total_s += usage.compute_s;
    longest_s = std::max(longest_s, usage.compute_s);
    const double share = usage.peak_memory_bytes / type.memory_bytes;
    if (share <= fullest_share) continue;
    fullest_share = share;
    result.peak_memory_bytes = usage.peak_memory_bytes;
    result.device_memory_bytes = type.memory_bytes;
  }
  if (total_s > 0)
    result.load_imbalance = longest_s / (total_s / static_cast<double>(machine.devices.size()));
}

void fill_links(const PreparedRun& run, const ReplayResult& replayed, RunResult& result) {
  const Machine& machine = run.machine;
  EntryList<LinkResult> entries(result.per_link, run.by_class, machine.links.size());
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const double bytes = replayed.links[l].bytes;
    const double capacity = machine.links[l].bandwidth_Bps * replayed.step_time_s;
    entries.add(machine.links[l].name, {{}, bytes, capacity > 0 ? bytes / capacity : 0});
  }
}

/// "3 of 4 NICs of n0 carry nothing: ... (and so in 3 other hosts)", of hosts of which some do; or "".
std::string idle_nics_text(const Machine& machine, const ReplayResult& replayed) {
  const auto is_nic = [](const Link& link) {
    return link.kind == LinkKind::nic && link.host != Link::no_host;
  };
  std::vector<double> bytes_of_port(machine.port_count);
  for (std::size_t l = 0; l < machine.links.size(); ++l)
    if (is_nic(machine.links[l])) bytes_of_port[machine.links[l].port] += replayed.links[l].bytes;
  struct Nics {
    std::uint32_t all = 0, idle = 0;
  };
  std::vector<Nics> nics(machine.hosts.size());
  std::vector<bool> counted(machine.port_count);
  for (const Link& link : machine.links) {
    if (!is_nic(link) || counted[link.port]) continue;
    counted[link.port] = true;
    ++nics[link.host].all;
    nics[link.host].idle += bytes_of_port[link.port] == 0;
  }
  std::string text;
  std::size_t others = 0;
  for (std::size_t h = 0; h < nics.size(); ++h) {
    if (nics[h].idle == 0 || nics[h].idle == nics[h].all) continue;
    if (text.empty())
      text = fmt::format(
          "{} of {} NICs of {} carry nothing{}", nics[h].idle, nics[h].all, machine.hosts[h].name,
          nics[h].all > machine.hosts[h].device_count ? ": a device uses the one that is nearest to it" : "");
    else
      ++others;
  }
  return others > 0 ? fmt::format("{} (and so in {} other host{})", text, others, others == 1 ? "" : "s")
                    : text;
}

/// The stages of a pipeline with what their devices did.
void fill_stages(const std::vector<PipelineStage>& stages, const Machine& machine,
                 const ReplayResult& replayed, RunResult& result) {
  double busy_s = 0, devices = 0;
  for (const PipelineStage& stage : stages) {
    StageResult& row = result.stages.emplace_back();
    row.device = machine.devices[stage.devices.front()].name;
    row.layers = stage.layers;
    row.weight_versions = stage.weight_versions;
    row.staleness = stage.staleness;
    for (const EndpointId d : stage.devices) {
      const EndpointUsage usage = replayed.endpoints[d];
      row.replicas.push_back(machine.devices[d].name);
      row.compute_s = std::max(row.compute_s, usage.compute_s);
      row.peak_memory_bytes = std::max(row.peak_memory_bytes, usage.peak_memory_bytes);
      busy_s += usage.compute_s;
      ++devices;
    }
  }
  if (devices > 0)
    result.bubble_fraction =
        replayed.step_time_s > 0 ? std::max(0.0, 1 - busy_s / (devices * replayed.step_time_s)) : 0;
}

/// "a + b" for the names in order, each listed once.
std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) ==
        names.begin() + static_cast<std::ptrdiff_t>(i))
      text += (text.empty() ? "" : " + ") + names[i];
  return text;
}

std::string device_types(const Machine& machine) {
  std::vector<std::string> names;
  for (const DeviceType& type : machine.device_types) names.push_back(type.name);
  return joined(names);
}

SoftwareResult software_of(const PreparedRun& run) {
  const TrainingOptions& options = run.graph->options;
  return {std::string(to_string(options.framework)),
          std::string(to_string(options.execution)),
          std::string(to_string(kernel_layout(options))),
          std::string(to_string(options.precision)),
          std::string(to_string(options.update_mode())),
          run.transport,
          !run.assumed_network.empty(),
          run.plan.launches,
          run.input};
}

std::string server_types(const Machine& machine) {
  std::vector<bool> used(machine.host_types.size());
  for (const Host& host : machine.hosts)
    if (host.device_count > 0) used[host.type] = true;
  std::vector<std::string> names;
  for (std::size_t t = 0; t < used.size(); ++t)
    if (used[t]) names.push_back(machine.host_types[t].server);
  return joined(names);
}

}  // namespace

std::optional<double> price_usd_per_h(const Machine& machine) {
  double price = 0;
  for (const Host& host : machine.hosts) {
    const std::optional<double> of_host = machine.host_types[host.type].price_usd_per_h;
    if (!of_host) return std::nullopt;
    price += *of_host;
  }
  return price;
}

namespace {

/// By how much longer (if negative: shorter) a device waits for its messages if each takes `factor` times as
/// long. The time for which it waits grows by this factor. So does communication beside its computing, of
/// which only the part becomes visible for which there was no room.
double comm_change_s(const EndpointUsage& device, double factor) {
  const double of_hidden_s = (factor - 1) * device.hidden_comm_s;
  const double beyond_room_s = std::max(0.0, std::abs(of_hidden_s) - device.comm_slack_s);
  return std::max(-device.exposed_comm_s,
                  (factor - 1) * device.exposed_comm_s + std::copysign(beyond_room_s, of_hidden_s));
}

/// By which shares of a step each doubt that was simulated makes it longer (sign 1) or shorter (-1), all of
/// them together, since they err independently.
double simulated_change(const std::vector<StepRange>& ranges, double step_s, double sign) {
  double squares = 0;
  for (const StepRange& range : ranges) {
    const double end_s = sign > 0 ? std::max(range[0], range[1]) : std::min(range[0], range[1]);
    const double change = std::max(0.0, sign * (end_s / step_s - 1));
    squares += change * change;
  }
  return std::sqrt(squares);
}

/// How long a step takes where its parts take longer or shorter, by the shares that its critical device says. A
/// device that idles waits for others: for their computing, or, where hosts have a part in the step (parameter
/// servers, sums inside a host), for the messages between them.
class StepByShares {
 public:
  /// @param devices of the machine, which are the first endpoints
  StepByShares(const Plan& plan, std::size_t devices, const ReplayResult& replayed,
               const EndpointUsage& critical)
      : plan_(plan),
        critical_(critical),
        own_s_(replayed.step_time_s - (plan.service() ? 0 : replayed.input_wait_s)) {
    bool with_hosts = false;
    for (std::size_t e = devices; e < replayed.endpoints.size() && !with_hosts; ++e)
      with_hosts = replayed.endpoints[e].end_s > 0;
    if (with_hosts)
      critical_.exposed_comm_s = std::max(critical.exposed_comm_s,
                                          replayed.step_time_s - replayed.input_wait_s - critical.compute_s);
  }

  /// Every message takes `factor` times as long.
  double with_messages_s(double factor) const { return fed_s(own_s_ + comm_change_s(critical_, factor)); }
  /// Everything but messages takes `factor` times as long: computing, and what waits for the computing of others. If
  /// messages did so too, the step would; they are quicker than that by the factor.
  double with_computing_s(double factor) const {
    return fed_s(factor * (own_s_ + comm_change_s(critical_, 1 / factor)));
  }

 private:
  /// With the wait for images, as a replay adds it. Clients of a service wait each for their own, which is a part of
  /// their steps here.
  double fed_s(double own_s) const {
    if (!plan_.input || plan_.service()) return own_s;
    return step_with_input_s(*plan_.input, plan_.steps, own_s * plan_.steps) / plan_.steps;
  }

  const Plan& plan_;
  EndpointUsage critical_;
  double own_s_;  ///< without the wait that fed_s() adds
};

/// Of the half of a 95 % interval of a normal value: that of the 80 % interval.
constexpr double of_80_percent = quantile_80 / 1.960;

/// Computing and communication take longer or shorter by their spreads, independently of each other, of what was
/// simulated, and of how well the mean of a service's steps is known.
std::optional<IntervalResult> interval_of(const PreparedRun& run, const RunResult& result,
                                          const ReplayResult& replayed, const EndpointUsage& critical,
                                          const std::vector<StepRange>& ranges) {
  const StepSpreads spreads = step_spreads(run, images_of_device(run));
  if ((spreads.all_exact() && ranges.empty()) || result.step_time_s <= 0) return std::nullopt;
  const StepByShares step(run.plan, run.machine.devices.size(), replayed, critical);
  const auto change = [&](double sign) {
    const auto factor = [&](double spread) { return std::exp(sign * quantile_80 * spread); };
    const double of_parts =
        std::hypot(step.with_computing_s(factor(spreads.compute)) / result.step_time_s - 1,
                   step.with_messages_s(factor(spreads.comm)) / result.step_time_s - 1,
                   std::hypot(factor(spreads.devices) - 1, of_80_percent * replayed.doubt));
    return ranges.empty() ? of_parts
                          : std::hypot(of_parts, simulated_change(ranges, result.step_time_s, sign));
  };
  const double shorter = std::max(1e-3, 1 - change(-1));
  const double longer = 1 + change(1);
  IntervalResult interval;
  interval.step_time_s = {result.step_time_s * shorter, result.step_time_s * longer};
  interval.throughput_images_per_s = {result.throughput_images_per_s / longer,
                                      result.throughput_images_per_s / shorter};
  interval.peak_memory_bytes = memory_range(result.peak_memory_bytes, run.graph->options.framework);
  interval.energy_j = {result.energy_j * shorter, result.energy_j * longer};
  return interval;
}

}  // namespace

IntervalResult::Range memory_range(double peak_memory_bytes, Framework framework) {
  const double factor = memory_factor(framework);
  return {peak_memory_bytes / factor, peak_memory_bytes * factor};
}

void widen_interval(RunResult& result, const RunResult& other) {
  if (!result.interval) return;
  const auto reach = [&](IntervalResult::Range IntervalResult::*range, double figure) {
    IntervalResult::Range& own = (*result.interval).*range;
    const IntervalResult::Range others =
        other.interval ? (*other.interval).*range : IntervalResult::Range{figure, figure};
    own = {std::min(own[0], others[0]), std::max(own[1], others[1])};
  };
  reach(&IntervalResult::step_time_s, other.step_time_s);
  reach(&IntervalResult::throughput_images_per_s, other.throughput_images_per_s);
  reach(&IntervalResult::peak_memory_bytes, other.peak_memory_bytes);
  reach(&IntervalResult::energy_j, other.energy_j);
}

RunResult evaluate(const PreparedRun& run, const ReplayResult& replayed,
                   const std::vector<StepRange>& ranges) {
  const Machine& machine = run.machine;
  require_conserved_time(machine, replayed);
  RunResult result;
  result.model = run.graph->model.name;
  result.cluster = machine.name;
  result.strategy = run.strategy;
  result.algorithms = run.algorithms;
  result.servers = server_types(machine);
  result.device_type = device_types(machine);
  result.software = software_of(run);
  result.network_model = machine.network_model;
  result.devices = static_cast<std::int64_t>(machine.devices.size());
  result.global_batch = run.plan.images;
  result.step_time_s = replayed.step_time_s;
  if (replayed.step_time_s > 0) result.throughput_images_per_s = run.plan.images / replayed.step_time_s;
  if (run.samples && replayed.step_time_s > 0) {
    result.epoch_time_s = static_cast<double>(*run.samples) / result.throughput_images_per_s;
    if (const std::optional<double> price = price_usd_per_h(machine))
      result.cost_usd_per_epoch = *price * *result.epoch_time_s / 3600;
  }
  const EndpointUsage critical = replayed.endpoints[critical_device(replayed, machine.devices.size())];
  result.compute_s = critical.compute_s;
  result.issue_wait_s = critical.issue_wait_s;
  result.exposed_comm_s = critical.exposed_comm_s;
  result.idle_s = std::max(0.0, result.step_time_s - result.compute_s - result.exposed_comm_s);
  result.comm_bytes = replayed.comm_bytes;
  fill_devices(run, replayed, result);
  fill_links(run, replayed, result);
  result.staleness = run.report.staleness;
  if (result.staleness && replayed.staleness)
    result.staleness = Staleness{replayed.staleness->mean, replayed.staleness->max};
  fill_stages(run.report.stages, machine, replayed, result);
  result.partition = run.report.partition;
  result.layouts = run.report.layouts;
  result.bottleneck = find_bottleneck(machine, replayed, run.plan.input ? &*run.plan.input : nullptr);
  result.warnings = warnings_of(run);
  if (std::string idle = idle_nics_text(run.machine, replayed); !idle.empty())
    result.warnings.push_back(std::move(idle));
  if (std::string doubt = measured_roughly_text(replayed.doubt); !doubt.empty())
    result.warnings.push_back(std::move(doubt));
  fill_process(run, replayed, result);
  result.interval = interval_of(run, result, replayed, critical, ranges);
  return result;
}

}  // namespace convoy::runs
