// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "topologies/device.h"

namespace convoy::inline calibration {

/// The units of a device that compute: a fit has parameters for each (docs/cost_model.md).
enum class ComputePath : std::uint8_t { cores, tensor_tf32, tensor_fp16 };

/// The units that `precision` runs on: tensor cores where the device has them, or is no CPU and has no
/// generation that would tell; else its cores.
ComputePath compute_path(const DeviceType& device, Precision precision);

/// A parameter of the fit: where it lives in an Efficiency, and what is believed of it before any
/// measurement. It is fitted in logarithms, which keeps it positive and makes "twice" and "half" equally far.
struct FitParameter {
  std::string_view key;  ///< of the YAML
  double cores,
      tensor;      ///< typical on ordinary cores, on tensor cores; 0: means nothing there, stays neutral
  double spread;   ///< standard deviation of the logarithm, over generations together
  bool of_device;  ///< a single device may deviate; else only chips and generations do
  bool of_multiprocessor;  ///< typical of one multiprocessor: a device has as many times that
  bool of_class;           ///< a share of peak or of bandwidth of one class of kernels
  double highest;          ///< that hardware can have: shares of bandwidth end at 1
  void (*set)(Efficiency&, double);
  double (*get)(const Efficiency&);
};
std::span<const FitParameter> fit_parameters();

/// Of `parameter` on `path` of `device`; 0 where it means nothing there.
double typical_value(const FitParameter& parameter, ComputePath path, const DeviceType& device);

/// What a device has of `parameter` over the fit's value of it: as many multiprocessors (typically many where
/// a description does not tell), and one of two pipes where only one of those that the peak counts computes.
double times_on_device(const FitParameter& parameter, ComputePath path, const DeviceType& device);

/// Gives `efficiency` of `device` what the fit says of `parameter` on `path`: times_on_device() of it, within
/// its bounds.
void put_parameter(const FitParameter& parameter, double value, ComputePath path, const DeviceType& device,
                   Efficiency& efficiency);

/// `value` as hardware can have it, and a file of a device can say. What a share of peak or of bandwidth comes to
/// is left as it is, since one that is out of bounds tells of wrong rows.
double within_bounds(const FitParameter& parameter, double value);

/// Devices that are fitted together: a GPU's generation; of other kinds all ("cpu").
std::string fit_family(const DeviceType& device);

/// Devices with one chip, whose efficiencies are alike: "gv100"; the device's own name where no other has its
/// chip.
std::string chip_of(const DeviceType& device);

/// `launch_overhead`, `issue_factor`, `efficiency` and `evidence` of a catalogue file.
std::string catalogue_yaml(const DeviceType& device);

}  // namespace convoy::calibration
