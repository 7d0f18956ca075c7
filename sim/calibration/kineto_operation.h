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
  std::string type;                               ///< of the first tensor: "float", "c10::Half", or ""
  std::vector<std::int64_t> output;               ///< shape, where it is known from elsewhere
  bool tf32 = false;                              ///< its GPU kernels run on tensor cores in tf32
};

/// The measurement that the operation's time is of: kernel, batch, precision and step. Nothing for operations
/// that have no counterpart among a profile's kernels, or whose shapes do not tell one.
std::optional<Measurement> measurement_of(const KinetoOperation& operation);

/// The same of a sum of two tensors of images: a residual connection, or a gradient of its own. An optimizer's
/// step adds weights of convolutions in the same way, so only who knows that the operation is none of its calls
/// this.
std::optional<Measurement> sum_of(const KinetoOperation& operation);

/// An optimizer's step, whose operations tell what it is: with addcdiv_, Adam; with mul_, SGD with momentum;
/// else SGD. Each runs over all parameters once.
class OptimizerStep {
 public:
  void add(const KinetoOperation& operation);
  /// Nothing where the operations do not tell how many parameters there are (those over lists of tensors).
  std::optional<Measurement> measurement() const;

 private:
  double added_ = 0, scaled_ = 0, divided_ = 0;  ///< values
};

/// True for names of GPU kernels of cuDNN, cuBLAS and CUTLASS that multiply in tf32.
bool runs_on_tf32(std::string_view gpu_kernel);

}  // namespace convoy::calibration
