// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace convoy::inline models {

struct LayerSummary {
  std::string name;
  std::string kind;
  Shape output_shape;
  std::int64_t parameters = 0;
  std::int64_t forward_macs = 0;
};

/// What `convoy show models NAME` prints; all for one image.
struct ModelSummary {
  std::string name;
  std::int64_t parameters = 0;
  std::size_t parameter_tensors = 0;
  std::int64_t forward_macs = 0;      ///< multiply-adds of convolutions and linear layers
  double forward_flops = 0;           ///< 2 forward_macs, and the FLOPs that custom layers state
  double saved_activation_bytes = 0;  ///< fp32; see saved_activation_bytes(TrainingGraph)
  std::vector<LayerSummary> layers;
};

ModelSummary summarize(const Model& model);

}  // namespace convoy::models
