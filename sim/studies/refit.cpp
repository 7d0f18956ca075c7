// SPDX-License-Identifier: MIT
#include "sim/studies/refit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/calibration/fit_parameters.h"

namespace convoy::inline studies {
namespace {

/// Whether the step computes every operation of the network once, with all images: no micro-batches.
bool computes_at_once(const PreparedRun& run) {
  const auto of_images = [](const Work& work) { return work.kind != KernelKind::update; };
  std::ptrdiff_t computed = 0;
  for (const Role& role : run.plan.roles)
    for (const Task& task : role.program) {
      if (task.kind != Task::Kind::compute) continue;
      for (const PlanOp& op : task.ops) {
        if (!of_images(op.work)) continue;
        if (op.images != run.plan.images) return false;
        ++computed;
      }
    }
  return run.plan.steps == 1 &&
         computed == std::ranges::count_if(run.graph->operations, [&](const Operation& operation) {
           return of_images(operation.work);
         });
}

/// A text of any characters as YAML, which JSON's are.
std::string yaml_quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void Refits::add(const PreparedRun& run, const std::string& network, double images_per_s) {
  if (run.machine.devices.size() != 1 || run.plan.input || run.cost.is_anchored()) return;
  const DeviceType& type = run.machine.device_types[run.machine.devices.front().type];
  if (type.evidence_spread == 0 || run.machine.devices.front().speed != 1 || !computes_at_once(run)) return;
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
    const std::string source = yaml_quoted(fmt::format(
        "fitted: convoy validate {}: {} rows of {} networks, under what the catalogue has as prior; networks "
        "that were left out are off by {:.1f} %, {:.1f} % before",
        file.substr(file.find_last_of('/') + 1), told.rows, told.networks, 100 * told.after,
        100 * told.before));
    told.yaml = fmt::format("base: {}\ntitle: \"{}, as measured here\"\n{}sources:\n", base, base, told.yaml);
    for (const char* key : {"launch_overhead", "evidence", "efficiency"})
      told.yaml += fmt::format("  {}: {}\n", key, source);
  }
  return refits;
}

}  // namespace convoy::studies
