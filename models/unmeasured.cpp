// SPDX-License-Identifier: MIT
#include "models/unmeasured.h"

#include "models/attention.h"

namespace convoy::inline models {

bool is_unmeasured(const Layer& layer, Framework framework) {
  if (const auto* attention = std::get_if<Attention>(&layer.kind)) return !keeps_scores(*attention, framework);
  return std::holds_alternative<Conv3d>(layer.kind) || std::holds_alternative<ConvTranspose3d>(layer.kind) ||
         std::holds_alternative<DeformConv2d>(layer.kind) || std::holds_alternative<Pool3d>(layer.kind) ||
         std::holds_alternative<RoiAlign>(layer.kind) || std::holds_alternative<DetectionLoss>(layer.kind);
}

}  // namespace convoy::models
