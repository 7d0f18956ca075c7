// SPDX-License-Identifier: MIT
#include "sim/run/search/prior_bound.h"

#include <vector>

#include "sim/run/energy.h"
#include "sim/run/evaluate.h"

namespace convoy::inline search {

std::optional<Assessment> prior_bound(const Strategy& strategy, const BatchSpec& batch,
                                      const PreparedRun& run, CostTable& table) {
  const std::optional<StepFloor> floor = strategy.floor(batch, table);
  if (!floor) return std::nullopt;
  Assessment assessment;
  assessment.label = strategy.label();
  assessment.images = static_cast<double>(floor->images);
  assessment.step_bound_s = floor->step_s;
  assessment.bound_text = floor->text;
  std::vector<double> idle_w;
  for (const Device& device : run.machine.devices)
    idle_w.push_back(run.machine.device_types[device.type].idle_power_w);
  assessment.energy_bound_j =
      step_energy_j(run.machine, floor->step_s, idle_w, [](std::size_t) { return 0.0; });
  assessment.price_usd_per_h = price_usd_per_h(run.machine);
  if (run.samples) assessment.samples = static_cast<double>(*run.samples);
  return assessment;
}

}  // namespace convoy::search
