// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "topologies/efficiency_fit.h"
#include "topologies/measurements.h"

namespace convoy {

/// One published or measured speed beside the prediction.
struct AccuracyRow {
  std::string device, model;
  double batch = 0;
  std::string precision;
  double published = 0, predicted = 0;  ///< images/s
  double error = 0;                     ///< predicted / published - 1
  std::string framework, source, role;  ///< role: "fit" or "test"
  std::string note;
};

struct CalibrationReport {
  DeviceType device;  ///< with the fitted efficiencies
  std::string yaml;   ///< efficiency_yaml(device)
  std::vector<AccuracyRow>
      rows;               ///< every measurement of the device in the profile, with the fitted prediction
  double mean_error = 0;  ///< of |error| over the rows with role fit
  double worst_error = 0;
};

/// Fits the catalogue device `device` to the rows of the profile that are about it and have role fit.
/// @throws InputError for an unreadable profile, an unknown device, and when there is no row to fit to.
CalibrationReport calibrate(const std::string& profile_csv, const std::string& device);

/// Predicts every training throughput of results/published/single_device.csv (whole networks; steps `train`
/// and `forward_backward`) with the catalogue as it is, in the file's order.
std::vector<AccuracyRow> single_device_accuracy();

}  // namespace convoy
