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
};
inline constexpr std::array<std::string_view, 4> leave_out_names{"device", "generation", "source", "family"};

/// A row with role fit, predicted by the fit of all others and by a fit that has not seen its group.
struct LeftOutRow {
  Measurement measurement;
  std::string group;         ///< the device, generation, repository or family that was left out
  double with_s, without_s;  ///< predicted seconds: its group fitted too, its group left out
};

/// Cross-validation of fit_catalogue: for every group of whole networks with role fit, the fit without it.
/// Rows with role test are neither fitted nor predicted. In the order of the groups' names.
std::vector<LeftOutRow> cross_validate(const std::vector<Measurement>& measurements, LeaveOut by);

}  // namespace convoy::calibration
