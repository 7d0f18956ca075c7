// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/calibration/measurements.h"
#include "topologies/device.h"

namespace convoy::inline calibration {

/// Everything that one fit over all devices and frameworks decides, as text of the catalogue's files.
struct CatalogueFit {
  std::map<std::string, std::string> devices;  ///< name -> catalogue_yaml (fit_parameters.h)
  std::map<std::string, std::string>
      software;           ///< framework -> its ways of execution (topologies/catalog/software)
  std::string residuals;  ///< topologies/catalog/software/residuals.yaml
  std::string hosts;      ///< results/published/hosts.csv
  double cost_before = 0, cost_after = 0;  ///< the sum that is minimised
  std::size_t rows = 0, unknowns = 0;
};

/// The maximum of the posterior of all parameters together (docs/cost_model.md): each is the sum, in
/// logarithms, of what all GPUs have in common, a generation's deviation, a chip's and a device's own, each
/// normally distributed about 0 with a spread of its own; frameworks have issue times and factors on kernels.
/// So a parameter moves only as far as its rows ask, and a device without rows has what its chip and its
/// generation have.
/// @param measurements rows with role fit count
CatalogueFit fit_catalogue(const std::vector<Measurement>& measurements);

}  // namespace convoy::calibration
