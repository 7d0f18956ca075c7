// SPDX-License-Identifier: MIT
#pragma once

#include "models/model.h"

namespace convoy::inline models {

/// Whether a network computes on tokens: more than half of its multiply-adds are of attention and of linear layers
/// over channels or tokens, as of vision transformers and MLP-Mixers. Frameworks keep the values of such layers token by
/// token, channels last, whatever the layout of convolutions is: of vision transformers, timm's figures of both layouts
/// on an RTX 3090 are the same to 1 % (results/published/single_device.csv).
bool computes_on_tokens(const Model& model);

}  // namespace convoy::models
