// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "models/framework.h"
#include "models/model.h"

namespace convoy::inline models {

/// What a framework keeps of a layer between forward and backward, and where it puts the layer's output.
struct MemoryRules {
  bool view = false;  ///< the output is the input's storage: no bytes, no kernel
  bool overwrites =
      false;  ///< writes over its input where nothing else needs that (torchvision's inplace=True)
  bool input_for_data = false;       ///< the data gradient reads the layer's inputs, so they are kept
  bool input_for_weights = false;    ///< the weight gradient does
  bool output_for_data = false;      ///< the data gradient reads the layer's output
  bool gradient_overwrites = false;  ///< the data gradient is written over the gradient it is made from
  std::string_view extra = {};  ///< name of a further buffer kept for the data gradient: "indices", "mask"
  double extra_bytes = 0;       ///< its size for one image, whatever the precision
  double extra_cast_bytes = 0;  ///< of a copy of it in half precision, which fp16 and bf16 keep besides
};

MemoryRules memory_rules(const Model& model, std::size_t index, Framework framework = Framework::pytorch);

}  // namespace convoy::models
