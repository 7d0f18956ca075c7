// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/calibration/measurements.h"

namespace convoy::inline calibration {

/// An operation of PyTorch with what the profiler recorded of its inputs.
struct KinetoOperation {
  std::string name;                               ///< "aten::cudnn_convolution"
  std::vector<std::vector<std::int64_t>> shapes;  ///< "Input Dims"
  std::vector<std::string> values;                ///< "Concrete Inputs", "" for tensors; may be missing
  std::string type;                               ///< of the first tensor: "float", "c10::Half"
  std::vector<std::int64_t> output;               ///< shape, where it is known from elsewhere
  bool tf32 = false;                              ///< its GPU kernels run on tensor cores in tf32
};

/// The measurement that the operation's time is of: kernel, batch, precision and step. Nothing for operations
/// that have no counterpart among a profile's kernels, or whose shapes do not tell one.
std::optional<Measurement> measurement_of(const KinetoOperation& operation);

/// True for names of GPU kernels of cuDNN, cuBLAS and CUTLASS that multiply in tf32.
bool runs_on_tf32(std::string_view gpu_kernel);

}  // namespace convoy::calibration
