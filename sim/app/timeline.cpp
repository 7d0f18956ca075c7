// SPDX-License-Identifier: MIT
#include "sim/app/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "topologies/first_devices.h"

namespace convoy {
namespace {

/// Of the fullest device.
struct Fullness {
  double share = 0, bytes = 0, of_bytes = 0;
};

struct PhaseMeasure {
  double step_time_s = 0;
  Fullness memory;
};

PhaseMeasure measure(const ReplayResult& replayed, const Machine& machine) {
  PhaseMeasure measured{replayed.step_time_s, {}};
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    const double bytes = replayed.endpoints[d].peak_memory_bytes;
    const double of_bytes = machine.device_types[machine.devices[d].type].memory_bytes;
    if (bytes / of_bytes > measured.memory.share) measured.memory = {bytes / of_bytes, bytes, of_bytes};
  }
  return measured;
}

double pause_s(const Reconfiguration& change, const Machine& machine, const CostModel& cost) {
  if (change.traffic.roles.empty()) return change.pause_s;
  const Machine part = first_devices(machine, change.traffic_devices);
  return change.pause_s + replay(change.traffic, part, cost, {}).step_time_s;
}

}  // namespace

std::vector<PhaseStart> lay_out(const std::vector<PhaseTimes>& phases) {
  std::vector<PhaseStart> starts;
  for (const PhaseTimes& phase : phases) {
    if (starts.empty()) {
      starts.push_back({phase.at_step, 0});
      continue;
    }
    const PhaseStart& before = starts.back();
    const double step_s = phases[starts.size() - 1].step_time_s;
    // A preparation that ends with a step, but for rounding, takes no further step.
    const double steps = step_s > 0 ? std::ceil(phase.preparation_s / step_s - 1e-9) : 0;
    PhaseStart start;
    start.step = std::max(phase.at_step, before.step) + static_cast<std::int64_t>(std::max(0.0, steps));
    start.start_s = before.start_s + static_cast<double>(start.step - before.step) * step_s + phase.pause_s;
    if (step_s == 0) start.start_s += phase.preparation_s;
    starts.push_back(start);
  }
  return starts;
}

void add_timeline(const PreparedRun& run, const ReplayResult& last, RunResult& result) {
  const Machine& machine = run.phased->machine;
  const std::vector<RunPhase>& phases = run.phased->phases;
  // The same devices share the batch out in the same way.
  std::map<std::uint32_t, PhaseMeasure> measured{{phases.back().devices, measure(last, run.machine)}};
  std::vector<PhaseTimes> times;
  for (const RunPhase& phase : phases) {
    if (!measured.contains(phase.devices)) {
      const Machine part = first_devices(machine, phase.devices);
      measured[phase.devices] = measure(replay(phase.plan, part, run.cost, {}), part);
    }
    times.push_back({phase.at_step, measured[phase.devices].step_time_s, phase.change.preparation_s,
                     pause_s(phase.change, machine, run.cost)});
  }
  const std::vector<PhaseStart> starts = lay_out(times);
  Fullness fullest;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const RunPhase& phase = phases[i];
    const PhaseMeasure& of_phase = measured[phase.devices];
    const auto [least, most] = std::minmax_element(phase.images.begin(), phase.images.end());
    result.phases.push_back({starts[i].step, phase.devices, starts[i].start_s, times[i].step_time_s,
                             times[i].step_time_s > 0 ? phase.plan.images / times[i].step_time_s : 0, *least,
                             *most, of_phase.memory.bytes});
    if (i > 0)
      result.reconfigurations.push_back(
          {phase.at_step, phases[i - 1].devices, phase.devices, times[i].pause_s, starts[i].step});
    if (of_phase.memory.share > fullest.share) fullest = of_phase.memory;
  }
  result.peak_memory_bytes = fullest.bytes;
  result.device_memory_bytes = fullest.of_bytes;
  result.fits = fullest.share <= 1;
}

}  // namespace convoy
