// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "sim/costs/cost_model.h"
#include "sim/run/prepared_run.h"

namespace convoy::inline runs {

// What the fits of devices, frameworks and hosts leave open of the time that a run's devices compute
// (docs/cost_model.md#intervals). Spreads are standard deviations of the logarithm of a time.

/// All that these spreads depend on.
struct Computing {
  std::shared_ptr<const TrainingGraph> graph;
  CostModel cost;
  std::vector<DeviceType> types;
  bool hosts_told = false;  ///< whether every host with devices says its `issue_factor`
  bool operator==(const Computing&) const = default;
};
Computing computing_of(const PreparedRun& run);

/// The spread where nobody measured kernels like those of the run on the device (unseen_kernels_spread).
double unseen_spread(const Computing& of, const DeviceType& type);

/// The kind of the run's step on one device (residual_kind). @param of_device images of the device
std::size_t step_kind(const Computing& of, double of_device);

/// The spread where no grouped or depthwise convolutions were fitted with the run's framework
/// (unseen_convolutions_spread).
/// @param kind step_kind()
double spread_of_convolutions(const Computing& of, const DeviceType& type, std::size_t kind);

/// The first layer of the network that is of a kind of which no kernel was measured; nullptr: there is none.
const Layer* unmeasured_layer(const Computing& of);

/// Whether the network has such layers, on a device whose spread does not say by itself what it leaves open (a device
/// that is exact, or that its owner calibrated, does). The network is then as little known as one of a kind that nobody
/// measured on the device.
bool has_unmeasured_layers(const Computing& of, const DeviceType& type);

/// The spread that the parameters of a kind of device leave.
/// @param kind step_kind()
double parameter_spread(const Computing& of, const DeviceType& type, std::size_t kind);

/// The spread that typical factors of the framework leave (software_spread), on GPUs to which figures were fitted.
double spread_of_software(const Computing& of);

/// The spread that the framework's products leave on a generation of GPUs on which nobody measured it
/// (unseen_generation_spread). @param images of the device
double spread_of_generation(const Computing& of, double images);

/// The spreads of compute time by their causes: parameters of devices, factors of the framework, issue times of hosts,
/// and steps like this one. All are 0 if every device is exact; if devices are scaled to a measurement, only `steps` is
/// not, which is then what the measurement leaves open (anchored_spread).
struct ComputeSpreads {
  double parameters = 0, software = 0, hosts = 0, steps = 0;
  double all() const { return std::hypot(std::hypot(parameters, software), hosts, steps); }
};
/// @param of_device images that one device works on in a step
ComputeSpreads compute_spreads(const PreparedRun& run, double of_device);

}  // namespace convoy::runs
