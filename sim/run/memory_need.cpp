// SPDX-License-Identifier: MIT
#include "sim/run/memory_need.h"

#include <fmt/format.h>

#include <vector>

#include "sim/base/quantity.h"
#include "sim/costs/residuals.h"

namespace convoy::inline runs {
namespace {

/// Adds what a plan needs on the first devices of the machine.
void add_plan(const Plan& plan, const Machine& machine, const TrainingOptions& options, MemoryNeed& need) {
  std::vector<MemoryPeak> peaks(machine.devices.size());
  for (const Role& role : plan.roles) {
    if (role.members[0] >= machine.devices.size()) continue;
    const MemoryPeak peak = peak_memory(role);
    for (const EndpointId d : role.members) peaks[d] = peak;
  }
  const std::vector<ProcessMemory> processes =
      process_memories(plan, machine, options, [&](std::size_t d) { return peaks[d].bytes; });
  for (std::size_t d = 0; d < peaks.size(); ++d) {
    const DeviceType& type = machine.device_types[machine.devices[d].type];
    const double device_bytes = type.memory_bytes;
    if (need.device.empty() || peaks[d].bytes / device_bytes > need.peak.bytes / need.device_bytes) {
      need.device = machine.devices[d].name;
      need.device_bytes = device_bytes;
      need.peak = peaks[d];
    }
    if (need.process_device.empty() || processes[d].share() > need.process.share()) {
      need.process_device = machine.devices[d].name;
      need.process = processes[d];
      need.warning = need.process.fits()
                         ? tight_text(need.process_device, type, need.process, options.framework)
                         : too_large_text(need.process_device, need.process) + ": this run would fail";
    }
  }
}

}  // namespace

MemoryNeed memory_need(const PreparedRun& run) {
  MemoryNeed need;
  if (run.phased)
    for (const RunPhase& phase : run.phased->phases)
      add_plan(phase.plan, run.phased->machine, run.graph->options, need);
  else
    add_plan(run.plan, run.machine, run.graph->options, need);
  return need;
}

std::string too_large_text(const std::string& device, const ProcessMemory& process) {
  return fmt::format("the process on {} needs {} and the driver leaves it {}", device,
                     format_bytes(process.bytes), format_bytes(process.of_bytes));
}

std::string tight_text(const std::string& device, const DeviceType& type, const ProcessMemory& process,
                       Framework framework) {
  const double factor = memory_factor(framework);
  if (!process.fits() || !has_process(type) || process.share() * factor <= 1) return "";
  return fmt::format(
      "the process on {} needs {} of the {} that the driver leaves it: predictions of memory are off by up "
      "to {:.0f} % in eight of ten cases, so it may run out of memory",
      device, format_bytes(process.bytes), format_bytes(process.of_bytes), 100 * (factor - 1));
}

}  // namespace convoy::runs
