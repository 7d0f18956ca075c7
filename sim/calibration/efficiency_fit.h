// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "sim/calibration/measurements.h"
#include "sim/costs/cost_model.h"

namespace convoy::inline calibration {

/// Work of known duration: what a calibration is fitted to.
struct Observation {
  std::vector<Work> works;
  double images = 0;
  Software software;
  double seconds = 0;
  double spread = 0.05;  ///< standard deviation of log(seconds) that the fit allows for
  /// A kernel or layer: beyond `spread`, its error counts linearly, not by its square (smooth L1), since
  /// single kernels are often far off for reasons of their own.
  bool has_outliers = false;
  bool without_launch = false;  ///< `seconds` holds no launch overhead
  BesideStep beside;
};

/// What takes the place of the typical values.
struct Belief {
  DeviceType device;                  ///< whose efficiencies count,
  std::vector<Precision> precisions;  ///< in these precisions
  double launch_s = 0;                ///< launch overhead; 0: the typical one
  /// Whether whole networks alone are observed: the launch is then that of a network's operations, of which
  /// more is known than of a library's benchmark (typical_issue.h).
  bool of_networks = false;
};

/// `device` with the efficiencies, the launch overhead and the issue_factor (its own times the host's) that
/// explain `observations` best: the maximum of the posterior with log-normal priors around typical values
/// (docs/cost_model.md has them), found with the Levenberg-Marquardt method. What the observations do not
/// tell stays at its prior. Fits each precision that is observed; the others get the values of the nearest
/// fitted one.
/// @param believed what takes the place of the typical values
DeviceType fit_efficiencies(const DeviceType& device, const std::vector<Observation>& observations,
                            const Belief& believed = Belief());

/// Seconds of an observation on `device`: its operations in order, each when the host has issued it.
double predicted_s(const Observation& observation, const DeviceType& device);

}  // namespace convoy::calibration
