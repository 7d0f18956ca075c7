// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace convoy::inline calibration {

/// How well times of single kernels are predicted, for one device, precision and kind of kernel.
struct KernelAccuracy {
  std::string measured_by;  ///< "DeepBench"
  std::string device, precision;
  std::string kind;  ///< "convolution", "matmul", "batch_norm", "relu"; "all": of these together
  std::size_t fitted = 0, tested = 0;    ///< numbers of rows
  double fit_error = 0, test_error = 0;  ///< medians of |predicted/measured time - 1|
  double catalogue_error = 0;            ///< of the catalogue's efficiencies, on the test rows
};

/// Fits the cost model to the rows with role fit of each file of kernel times (results/published/layers.csv,
/// layers_pipedream.csv), a device at a time, and predicts the others. In the files' order; a device's
/// precision ends with its row "all".
std::vector<KernelAccuracy> kernel_cross_validation();

}  // namespace convoy::calibration
