// SPDX-License-Identifier: MIT
#include "sim/run/compute_spreads.h"

#include <algorithm>

#include "models/unmeasured.h"
#include "sim/base/memo.h"
#include "sim/costs/residuals.h"
#include "sim/costs/software_evidence.h"

namespace convoy::inline runs {
namespace {

/// What spreads of a step depend on: also the images that one device works on in it.
struct ImagesComputed {
  Computing of;
  double of_device;
  bool operator==(const ImagesComputed&) const = default;
  std::size_t hash() const {
    return hash_with(std::hash<const void*>{}(of.graph.get()), std::hash<double>{}(of_device));
  }
};

/// Standard deviation of log(step time of one device) due to not knowing how fast its host issues operations
/// (unknown_host_spread): 0 if every server states its `host.issue_factor`.
double spread_of_hosts(const Computing& of, double images) {
  if (of.hosts_told) return 0;
  double spread = 0;
  for (const DeviceType& type : of.types)
    spread = std::max(spread, unknown_host_spread(type, [&](const DeviceType& device) {
                        return step_time_s(*of.graph, images, of.cost, device);
                      }));
  return spread;
}

ComputeSpreads spreads_of(const ImagesComputed& computed) {
  const auto& [of, of_device] = computed;
  ComputeSpreads spreads;
  const std::size_t kind = step_kind(of, of_device);
  for (const DeviceType& type : of.types)
    spreads.parameters = std::max(spreads.parameters, parameter_spread(of, type, kind));
  if (spreads.parameters == 0) return {};
  spreads.software = std::hypot(spread_of_software(of), spread_of_generation(of, of_device));
  spreads.hosts = spread_of_hosts(of, of_device);
  for (const DeviceType& type : of.types)
    spreads.steps = std::max(spreads.steps, std::hypot(residual_spread(kind), machine_spread(type)));
  if (!of.cost.is_anchored()) return spreads;
  double anchored = 0;
  for (const double images : of.cost.anchored_images())
    anchored = std::max(anchored, anchored_spread(of_device, images));
  return {0, 0, 0, std::min(anchored, spreads.all())};  // a measurement is never less than none
}

}  // namespace

Computing computing_of(const PreparedRun& run) {
  const Machine& machine = run.machine;
  const bool told = std::all_of(machine.hosts.begin(), machine.hosts.end(), [&](const Host& host) {
    return host.device_count == 0 || machine.host_types[host.type].issue_factor > 0;
  });
  return {run.graph, run.cost, machine.device_types, told};
}

double unseen_spread(const Computing& of, const DeviceType& type) {
  return unseen_kernels_spread(type, of.graph->options.precision, of.cost.software().costs);
}

std::size_t step_kind(const Computing& of, double of_device) {
  std::vector<Work> works;
  for (const Operation& operation : of.graph->operations) works.push_back(operation.work);
  return residual_kind(works, of_device, of.graph->options.precision);
}

double spread_of_convolutions(const Computing& of, const DeviceType& type, std::size_t kind) {
  return unseen_convolutions_spread(type, network_kind(kind), of.graph->options.framework);
}

const Layer* unmeasured_layer(const Computing& of) {
  const std::vector<Layer>& layers = of.graph->model.layers;
  const auto found = std::ranges::find_if(
      layers, [&](const Layer& layer) { return is_unmeasured(layer, of.graph->options.framework); });
  return found == layers.end() ? nullptr : &*found;
}

bool has_unmeasured_layers(const Computing& of, const DeviceType& type) {
  const bool is_exact = type.evidence_spread == 0, is_calibrated = type.evidence_left_out_error > 0;
  return !is_exact && !is_calibrated && unmeasured_layer(of) != nullptr;
}

double parameter_spread(const Computing& of, const DeviceType& type, std::size_t kind) {
  const bool seen = networks_are_seen(type, network_kind(kind)) && !has_unmeasured_layers(of, type);
  return std::hypot(device_spread(type, seen),
                    std::max(unseen_spread(of, type), spread_of_convolutions(of, type, kind)));
}

double spread_of_software(const Computing& of) {
  const auto& types = of.types;
  const bool fitted = std::any_of(types.begin(), types.end(), [](const DeviceType& type) {
    return !type.kind->in_process && type.evidence_spread > 0 && type.issue_factor > 0;
  });
  const TrainingOptions& options = of.graph->options;
  return fitted ? software_spread(options.framework, options.execution) : 0;
}

double spread_of_generation(const Computing& of, double images) {
  double spread = 0;
  for (const DeviceType& type : of.types)
    spread = std::max(spread, unseen_generation_spread(type, of.graph->options.framework, [&](double factor) {
                        Software software = of.cost.software();
                        software.costs.kepler *= factor;
                        return step_time_s(*of.graph, images, of.cost.with(software), type);
                      }));
  return spread;
}

ComputeSpreads compute_spreads(const PreparedRun& run, double of_device) {
  static thread_local Memo<ImagesComputed, ComputeSpreads> memo(64);
  return memo.of({computing_of(run), of_device}, &spreads_of);
}

}  // namespace convoy::runs
