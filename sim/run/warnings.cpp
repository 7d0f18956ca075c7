// SPDX-License-Identifier: MIT
#include "sim/run/warnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/run/doubts.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {
namespace {

/// "13 of the 16 devices (n0.gpu3 and others) have nothing to do; ...", of devices without a task; or "".
std::string idle_devices_text(const PreparedRun& run) {
  std::vector<bool> works(run.machine.devices.size(), false);
  for (const Role& role : run.plan.roles)
    for (const EndpointId member : role.members)
      if (member < works.size() && !role.program.empty()) works[member] = true;
  const auto idle = std::count(works.begin(), works.end(), false);
  if (idle == 0) return "";
  const auto first = static_cast<std::size_t>(std::find(works.begin(), works.end(), false) - works.begin());
  return fmt::format(
      "{} of the {} devices ({}{}) {} nothing to do; the energy they draw and the price of their "
      "hosts count all the same",
      idle, works.size(), run.machine.devices[first].name, idle == 1 ? "" : " and others",
      idle == 1 ? "has" : "have");
}

}  // namespace

std::vector<std::string> warnings_of(const PreparedRun& run) {
  std::vector<std::string> warnings = evidence_warnings(run);
  warnings.insert(warnings.end(), run.report.notes.begin(), run.report.notes.end());
  if (std::string idle = idle_devices_text(run); !idle.empty()) warnings.push_back(std::move(idle));
  return warnings;
}

}  // namespace convoy::runs
