// SPDX-License-Identifier: MIT
#include "sim/studies/refit.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/calibration/fit_parameters.h"

namespace convoy::inline studies {

void Refits::add(const PreparedRun& run, const std::string& network, double images_per_s) {
  if (run.machine.devices.size() != 1 || run.plan.input || run.cost.is_anchored()) return;
  const DeviceType& type = run.machine.device_types[run.machine.devices.front().type];
  if (type.evidence_spread == 0 || run.machine.devices.front().speed != 1) return;
  // What its host adds is part of the device here, as in what convoy calibrate writes.
  auto of = std::ranges::find_if(devices_, [&](const OfDevice& known) {
    return known.device.name == type.name && known.device.issue_factor == type.issue_factor;
  });
  if (of == devices_.end()) of = devices_.insert(devices_.end(), {type, {}});
  std::vector<Work> works;
  for (const Operation& operation : run.graph->operations) works.push_back(operation.work);
  of->steps.push_back(
      {network, std::move(works), run.plan.images, run.cost.software(), run.plan.images / images_per_s});
}

std::vector<ValidatedRefit> Refits::fit(const std::string& file) const {
  std::vector<ValidatedRefit> refits;
  for (const OfDevice& of : devices_) {
    const std::optional<Refit> refit = refit_device(of.device, of.steps);
    if (!refit) continue;
    const std::string base = of.device.name.substr(0, of.device.name.find(' '));
    ValidatedRefit& told =
        refits.emplace_back(ValidatedRefit{of.device.name, of.steps.size(), refit->networks, refit->before,
                                           refit->after, base + "-here", catalogue_yaml(refit->device)});
    const auto same_name = [&](const ValidatedRefit& other) { return other.name == told.name; };
    if (std::count_if(refits.begin(), refits.end(), same_name) > 1)  // with hosts of other speeds
      told.name += fmt::format("-{}", std::count_if(refits.begin(), refits.end(), same_name));
    const std::string source = fmt::format(
        "\"fitted: convoy validate {}: {} rows of {} networks, under what the catalogue has as prior; "
        "networks "
        "that were left out are off by {:.1f} %, {:.1f} % before\"",
        file.substr(file.find_last_of('/') + 1), told.rows, told.networks, 100 * told.after,
        100 * told.before);
    told.yaml = fmt::format("base: {}\ntitle: \"{}, as measured here\"\n{}sources:\n", base, base, told.yaml);
    for (const char* key : {"launch_overhead", "evidence", "efficiency"})
      told.yaml += fmt::format("  {}: {}\n", key, source);
  }
  return refits;
}

}  // namespace convoy::studies
