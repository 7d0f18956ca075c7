// SPDX-License-Identifier: MIT
#include "sim/run/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/quantity.h"

namespace convoy::inline runs {
namespace {

constexpr double equal_share = 1e-6;  ///< a reader takes shares this close as equal

struct Busiest {
  std::size_t first = 0;
  std::size_t count = 0;  ///< number of those that are as busy
  double share = 0;
};

template <class Seconds>
Busiest busiest(std::size_t count, double step_s, Seconds seconds) {
  Busiest result;
  for (std::size_t i = 0; i < count; ++i)
    if (const double share = step_s > 0 ? seconds(i) / step_s : 0; share > result.share + equal_share)
      result = {i, 0, share};
  for (std::size_t i = 0; i < count; ++i)
    if (step_s > 0 && seconds(i) / step_s >= result.share - equal_share) ++result.count;
  return result;
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.0995 ? 1 : 0); }

std::optional<Bottleneck> over_full(const Machine& machine, const ReplayResult& replayed) {
  std::optional<Bottleneck> worst;
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    const double size = machine.device_types[machine.devices[d].type].memory_bytes;
    const double peak = replayed.endpoints[d].peak_memory_bytes;
    if (peak <= size || (worst && peak / size <= worst->utilization)) continue;
    worst = Bottleneck{"memory", machine.devices[d].name, peak / size,
                       fmt::format("{} needs {} and has {} of memory", machine.devices[d].name,
                                   format_bytes(peak), format_bytes(size))};
  }
  return worst;
}

std::string compute_text(const Machine& machine, const Busiest& found) {
  const Device& device = machine.devices[found.first];
  const std::string& type = machine.device_types[device.type].name;
  const std::size_t all = machine.devices.size();
  if (found.count == all)
    return fmt::format("{} {} of the step",
                       all == 1                           ? fmt::format("the {} computes", type)
                       : machine.device_types.size() == 1 ? fmt::format("all {} {} compute", all, type)
                                                          : fmt::format("all {} devices compute", all),
                       percent(found.share));
  if (found.count > 1)
    return fmt::format("{} of {} devices, such as {} ({}), compute {} of the step", found.count, all,
                       device.name, type, percent(found.share));
  return fmt::format("{} ({}) computes {} of the step", device.name, type, percent(found.share));
}

/// A device that computes: it runs operations, or waits between them until its host has issued the next one.
Bottleneck compute_bottleneck(const Machine& machine, const ReplayResult& replayed, const Busiest& found) {
  const Device& device = machine.devices[found.first];
  const EndpointUsage usage = replayed.endpoints[found.first];
  if (usage.compute_s <= 0 || 2 * usage.running_s() >= usage.compute_s)
    return {"compute", device.name, found.share, compute_text(machine, found)};
  const Host& host = machine.hosts[device.host];
  const double share = usage.issue_wait_s / replayed.step_time_s;
  return {
      "issue", host.name, share,
      fmt::format("{} operations more slowly than the {} runs them: {} waits for that {} of the step",
                  found.count > host.device_count ? fmt::format("hosts such as {} issue", host.name)
                                                  : fmt::format("{} issues", host.name),
                  machine.device_types[device.type].name,
                  found.count > 1 ? fmt::format("each of {} devices", found.count) : "it", percent(share))};
}

/// "n0's NIC", "parameter server ps0's NIC 2", "link leaf2.spine1", "the medium 'air'".
std::string port_text(const Machine& machine, const Link& link) {
  const std::string port = port_name(link);
  if (link.kind == LinkKind::nic && link.host != Link::no_host) {
    const Host& host = machine.hosts[link.host];
    const std::string number = port.substr(host.name.size() + std::string_view(".nic").size());
    return fmt::format("{}{}'s NIC{}{}", host.device_count == 0 ? "parameter server " : "", host.name,
                       number.empty() ? "" : " ", number);
  }
  const bool medium = link.kind == LinkKind::network && link.direction == Link::Direction::both;
  return medium ? fmt::format("the medium '{}'", port) : fmt::format("link {}", port);
}

/// The port with the most loaded link (bytes divided by its capacity): if several ports are busy all the
/// time, the others wait for this one. `count` ports have the same load.
Busiest most_loaded_port(const Machine& machine, const ReplayResult& replayed) {
  std::vector<double> load_s(machine.port_count);
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    double& load = load_s[machine.links[l].port];
    load = std::max(load, replayed.links[l].bytes / machine.links[l].bandwidth_Bps);
  }
  Busiest port = busiest(load_s.size(), replayed.step_time_s, [&](std::size_t p) { return load_s[p]; });
  port.share = port.count > 0 && replayed.step_time_s > 0
                   ? replayed.port_busy_s[port.first] / replayed.step_time_s
                   : 0;
  return port;
}

/// A busy port: busy with bytes, or with messages whose latency does not occupy it. In the latter case, bytes
/// leave each of its directions unused for more than half of the time in which the port is busy.
Bottleneck port_bottleneck(const Machine& machine, const ReplayResult& replayed, const Busiest& port) {
  double bytes_s = 0, busy_s = 0;
  const Link& link = *std::find_if(machine.links.begin(), machine.links.end(),
                                   [&](const Link& each) { return each.port == port.first; });
  const std::string name = port_name(link);
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    if (machine.links[l].port != port.first) continue;
    bytes_s += replayed.links[l].bytes / machine.links[l].bandwidth_Bps;
    busy_s += replayed.links[l].busy_s;
  }
  const double bytes_share = busy_s > 0 ? port.share * std::min(1.0, bytes_s / busy_s) : 0;
  const std::string whose =
      fmt::format("{}{}", port_text(machine, link),
                  port.count > 1 ? fmt::format(" (and {} like it)", port.count - 1) : "");
  if (2 * bytes_share >= port.share)
    return {"link", name, port.share, fmt::format("{} is busy {} of the step", whose, percent(port.share))};
  return {"latency", name, port.share - bytes_share,
          fmt::format("{} has messages under way {} of the step, {} of it for latency: their bytes need {}",
                      whose, percent(port.share), percent(port.share - bytes_share), percent(bytes_share))};
}

}  // namespace

Bottleneck find_bottleneck(const Machine& machine, const ReplayResult& replayed, const InputFeed* input) {
  if (std::optional<Bottleneck> memory = over_full(machine, replayed)) return *memory;
  const double step_s = replayed.step_time_s;
  constexpr double least_wait = 1e-3;  // of a step
  if (input && replayed.input_wait_s > least_wait * step_s) {
    const std::uint32_t host = replayed.input_host;
    return {"input", machine.hosts[host].name, std::min(1.0, input->interval_s[host] / step_s),
            fmt::format("{}; devices wait for it {} of the step", input->limit[host],
                        percent(replayed.input_wait_s / step_s))};
  }
  const std::size_t devices = machine.devices.size();
  const Busiest compute =
      busiest(devices, step_s, [&](std::size_t d) { return replayed.endpoints[d].compute_s; });
  const Busiest port = most_loaded_port(machine, replayed);
  const Busiest host = busiest(machine.hosts.size(), step_s,
                               [&](std::size_t h) { return replayed.endpoints[devices + h].compute_s; });
  if (compute.share + equal_share >= std::max(port.share, host.share))
    return compute_bottleneck(machine, replayed, compute);
  if (port.share + equal_share >= host.share) return port_bottleneck(machine, replayed, port);
  const std::string& name = machine.hosts[host.first].name;
  return {"host", name, host.share,
          fmt::format("{}'s CPUs add gradients {} of the step", name, percent(host.share))};
}

}  // namespace convoy::runs
