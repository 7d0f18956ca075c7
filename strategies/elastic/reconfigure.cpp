// SPDX-License-Identifier: MIT
#include "strategies/elastic/reconfigure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "sim/collectives/collectives.h"
#include "sim/costs/residuals.h"

namespace convoy::inline strategies {
namespace {

/// A time, which may be zero.
Key<RestartTimes> time_key(std::string name, std::string meaning, double RestartTimes::*field) {
  const double usual_s = RestartTimes{}.*field;
  return {key_text(name, fmt::format("{:g}s", usual_s), forms::quantity(Dimension::time), std::move(meaning)),
          [name, field, usual_s](YamlMap& map, RestartTimes& times) {
            times.*field = map.quantity_or(name, Dimension::time, usual_s);
          }};
}

/// What a file states has no spread.
Key<RestartTimes> exact_if_stated(Key<RestartTimes> key, double RestartTimes::Spreads::*spread) {
  key.read = [inner = std::move(key.read), name = key.text.name, spread](YamlMap& map, RestartTimes& times) {
    if (map.find(name)) times.spreads.*spread = 0;
    inner(map, times);
  };
  return key;
}

/// A time of reading or writing the state.
Key<RestartTimes> checkpoint_key(std::string name, std::string meaning,
                                 std::optional<double> RestartTimes::*field) {
  return {key_text(name, "the state's bytes / storage", forms::quantity(Dimension::time), std::move(meaning)),
          [name, field](YamlMap& map, RestartTimes& times) {
            if (map.find(name)) times.*field = map.quantity(name, Dimension::time);
          }};
}

/// A part of a pause.
struct PausePart {
  double time_s, spread;
};

/// The pause that consists of these parts, and its 80 % interval: they are independent, and their distances from the
/// middle are added as squares.
void set_pause(std::initializer_list<PausePart> parts, Reconfiguration& change) {
  double shorter = 0, longer = 0;
  for (const PausePart& part : parts) {
    const double factor = std::exp(quantile_80 * part.spread);
    shorter += std::pow(part.time_s - part.time_s / factor, 2);
    longer += std::pow(part.time_s * factor - part.time_s, 2);
    change.pause_s += part.time_s;
  }
  change.shorter_s = std::sqrt(shorter);
  change.longer_s = std::sqrt(longer);
}

}  // namespace

const Keys<RestartTimes>& restart_time_keys() {
  using Times = RestartTimes;
  using Spreads = RestartTimes::Spreads;
  static const Keys<Times> keys{
      time_key("stop", "the old workers' end", &Times::stop_s),
      checkpoint_key("checkpoint_write", "weights and optimizer state are written",
                     &Times::checkpoint_write_s),
      exact_if_stated(time_key("process_start", "until a worker's program runs", &Times::process_start_s),
                      &Spreads::process_start),
      exact_if_stated(time_key("framework_init", "its libraries are loaded", &Times::framework_init_s),
                      &Spreads::framework_init),
      exact_if_stated(time_key("graph_build", "session, context of the device, the network's graph",
                               &Times::graph_build_s),
                      &Spreads::graph_build),
      checkpoint_key("checkpoint_read", "weights and optimizer state are read", &Times::checkpoint_read_s),
      exact_if_stated(
          time_key("communicator", "set-up of a communicator of any size", &Times::communicator_s),
          &Spreads::communicator),
      time_key("communicator_per_device", "and for each of its devices", &Times::communicator_per_device_s),
      exact_if_stated(
          quantity_key<Times>("storage", "600MB/s", Dimension::bandwidth, "where checkpoints are",
                              &Times::storage_Bps, [](const Times&) { return Times{}.storage_Bps; }),
          &Spreads::storage)};
  return keys;
}

double state_bytes(const TrainingGraph& graph) {
  const auto resident = graph.resident_bytes();
  return resident[static_cast<std::size_t>(MemoryClass::weights)] +
         resident[static_cast<std::size_t>(MemoryClass::optimizer)];
}

Reconfiguration restart(const RestartTimes& times, const TrainingGraph& graph, std::uint32_t to) {
  const double storage_s = state_bytes(graph) / times.storage_Bps;
  const double by_storage_s =
      (times.checkpoint_write_s ? 0 : storage_s) + (times.checkpoint_read_s ? 0 : storage_s);
  Reconfiguration change;
  change.reads_checkpoint = true;
  set_pause({{times.stop_s + times.checkpoint_write_s.value_or(0) + times.checkpoint_read_s.value_or(0), 0},
             {by_storage_s, times.spreads.storage},
             {times.process_start_s, times.spreads.process_start},
             {times.framework_init_s, times.spreads.framework_init},
             {times.graph_build_s, times.spreads.graph_build},
             {times.communicator(to), times.spreads.communicator}},
            change);
  return change;
}

Reconfiguration overlapped(const RestartTimes& times, double state_bytes, const Machine& machine,
                           std::uint32_t from, std::uint32_t to) {
  Reconfiguration change;
  change.traffic_devices = std::max(from, to);
  if (to > from) {
    change.preparation_s = times.process_start_s + times.framework_init_s + times.graph_build_s;
    set_pause({{times.communicator(to), times.spreads.communicator}}, change);
    change.traffic = collective_of_all(broadcast_to_newcomers(machine, from), "broadcast to newcomers",
                                       state_bytes, machine);
  } else {
    constexpr double one_value_bytes = 8;
    std::vector<EndpointId> ranks(from);
    for (EndpointId d = 0; d < from; ++d) ranks[d] = d;
    change.traffic = collective_of_all(tree_all_reduce(ranks), "agree who leaves", one_value_bytes, machine);
  }
  return change;
}

Reconfiguration redistributed(const RestartTimes& times, MoveTraffic traffic, const Machine& machine,
                              std::uint32_t from, std::uint32_t to) {
  Reconfiguration change;
  change.traffic_devices = std::max(from, to);
  if (to > from) change.preparation_s = times.process_start_s + times.framework_init_s + times.graph_build_s;
  set_pause({{times.communicator(to), times.spreads.communicator}}, change);
  if (traffic.bytes > 0)
    change.traffic =
        collective_of_all(std::move(traffic.pattern), "states to their new devices", traffic.bytes, machine);
  return change;
}

Pattern broadcast_to_newcomers(const Machine& machine, std::uint32_t holders) {
  const auto devices = static_cast<std::uint32_t>(machine.devices.size());
  Pattern pattern;
  pattern.groups.emplace_back();
  for (EndpointId d = 0; d < devices; ++d) pattern.groups[0].push_back(d);
  std::vector<char> has(devices, 0);
  std::fill(has.begin(), has.begin() + holders, 1);
  for (std::uint32_t left = devices - holders; left > 0;) {
    Round round{{}, {1.0}, 1};
    std::vector<char> got(devices, 0);
    const auto give = [&](std::uint32_t from, bool own_host) {
      for (std::uint32_t to = 0; to < devices; ++to) {
        if (has[to] || got[to] || (own_host && machine.devices[to].host != machine.devices[from].host))
          continue;
        round.pairs.emplace_back(from, to);
        got[to] = 1;
        return true;
      }
      return false;
    };
    std::vector<std::uint32_t> free;
    for (std::uint32_t from = 0; from < devices; ++from)
      if (has[from] && !give(from, true)) free.push_back(from);
    for (const std::uint32_t from : free) give(from, false);
    left -= static_cast<std::uint32_t>(round.pairs.size());
    for (std::uint32_t d = 0; d < devices; ++d) has[d] = static_cast<char>(has[d] | got[d]);
    pattern.rounds.push_back(std::move(round));
  }
  return pattern;
}

}  // namespace convoy::strategies
