// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/calibration/measurements.h"

namespace convoy::inline calibration {

/// What a fit is tried on that has not seen it: all rows of one value of this are left out together.
enum class LeaveOut : std::uint8_t {
  device,      ///< with its kernels
  generation,  ///< of devices, with their kernels
  source,      ///< a repository of whole networks' figures; benchmarks of kernels stay
  family,      ///< of networks; benchmarks of kernels stay
  framework,   ///< with its networks' figures on one generation of GPUs; benchmarks of kernels stay
};
inline constexpr std::array<std::string_view, 5> leave_out_names{"device", "generation", "source", "family",
                                                                 "framework"};

/// A row of a whole network, predicted by the fit of all others and by a fit that has not seen its group.
struct LeftOutRow {
  Measurement measurement;
  std::string group;         ///< the device, generation, repository, family or framework that was left out
  double with_s, without_s;  ///< predicted seconds: its group fitted too, its group left out
  std::size_t kind = 0;      ///< residual_kind
  // What the fit without the group knows and leaves open:
  bool device_unseen = false;    ///< no network of the device was fitted
  bool networks_unseen = false;  ///< some were, but none of this kind
  /// No grouped or depthwise convolutions with the framework were, on any GPU, and this is of some on one.
  bool convolutions_unseen = false;
  bool software_unseen = false;  ///< no kernels of the framework's way of execution were
  /// Products are up to the framework on the device (products_follow_framework), and none of its figures on that
  /// generation was fitted; then also how the others' products are (Posterior::factors_on).
  bool generation_unseen = false;
  std::vector<double> generation_factors = {};
  double of_device = 0;          ///< standard deviation of log(seconds) that the device's evidence then says
  double of_kernels = 0;         ///< unseen_kernels_spread
  double host_slope = 0;         ///< of log(without_s) by log(how slow the host is)
  double generation_slope = 0;   ///< the same by log(time of products) where generation_unseen; else 0
  double feed_slope = 0;         ///< the same by log(time of the copy of a batch from the host's memory)
};

/// Cross-validation of fit_catalogue: for every group of whole networks, the fit without it, on a typical
/// host. Rows with role test are never fitted; where sources or frameworks are left out, they are predicted as
/// well, by the fit that has not seen the others of their group. In the order of the groups' names.
std::vector<LeftOutRow> cross_validate(const std::vector<Measurement>& measurements, LeaveOut by);

}  // namespace convoy::calibration
