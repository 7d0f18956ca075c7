// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/calibration/efficiency_fit.h"
#include "sim/calibration/measurements.h"

namespace convoy::inline calibration {

/// One published or measured speed beside the prediction.
struct AccuracyRow {
  std::string device, model;
  double batch = 0;
  std::string precision;
  double published = 0, predicted = 0;  ///< images/s
  double on_typical_host = 0;           ///< what is predicted where nothing is known of the host, images/s
  bool host_known = false;              ///< MeasuredHosts has the host that it was measured on
  double error = 0;                     ///< predicted / published - 1
  std::string framework, source, role;  ///< role: of RowRole
  std::string note;
  MeasuredStep step = MeasuredStep::train;
  std::string software;      ///< "pytorch1 eager nchw"
  double low = 0, high = 0;  ///< images/s: the true figure lies between with probability 80 %
  std::string kind;          ///< of kernel: "convolution", "matmul"; "" for what is not a kernel
};

struct CalibrationReport {
  DeviceType device;             ///< with the fitted efficiencies, on a typical host
  double host_issue_factor = 1;  ///< of the host that its networks were measured on
  std::string yaml;              ///< catalogue_yaml(device)
  std::vector<AccuracyRow>
      rows;               ///< every measurement of the device in the profile, with the fitted prediction
  double mean_error = 0;  ///< of |error| over the rows with role fit
  double worst_error = 0;
  /// Networks that were each left out of the fit in turn, which is what the device's evidence rests on; 0:
  /// there was one, or none, and the evidence is that of a device that nobody measured.
  std::size_t left_out_networks = 0;
};

/// Fits a device to the measurements that name it and have role fit: first to its kernels and layers, then,
/// believing the result, to its whole networks. What is not fitted (peaks, memory) is the device's own.
/// @param pos where errors that concern them all are reported
/// @param launch_s launch overhead before any measurement; 0: the typical one
/// @throws InputError when there is no row to fit to.
CalibrationReport calibrate(const std::vector<Measurement>& measurements, const DeviceType& device,
                            const SourcePos& pos, double launch_s = 0);

/// The same for a device of the catalogue, to the rows of profiles. @throws InputError for an unknown device
/// or an unreadable profile, too.
CalibrationReport calibrate(const std::vector<std::string>& profiles, const std::string& device);

/// A training step of one's own on one device alone.
struct OwnStep {
  std::string network;  ///< its steps are left out together
  std::vector<Work> works;
  double images = 0;
  Software software;
  double seconds = 0;
};

/// A device of the catalogue, fitted again to steps of one's own.
struct Refit {
  DeviceType device;  ///< fitted to all steps, with its evidence; issue_factor is that of the steps' host
  std::size_t networks = 0;  ///< each left out in turn
  double before = 0,
         after = 0;  ///< mean error of images/s of all steps: of the device as it is, and left out
};

/// Under priors around what the device has, not around typical values. Nothing where the steps are of fewer than
/// two networks, so that nobody could say what the fit is worth.
std::optional<Refit> refit_device(const DeviceType& device, const std::vector<OwnStep>& steps);

/// Predicts every row of results/published/single_device.csv (whole networks) with the catalogue as it is, in
/// the file's order.
std::vector<AccuracyRow> single_device_accuracy();

/// Predicts every row of a profile with the catalogue as it is, in the file's order.
std::vector<AccuracyRow> kernel_accuracy(const std::string& profile);

}  // namespace convoy::calibration
