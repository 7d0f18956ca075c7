// SPDX-License-Identifier: MIT
#include "models/token_order.h"

#include <variant>

namespace convoy::inline models {

bool computes_on_tokens(const Model& model) {
  double all = 0, of_tokens = 0;
  for (const Layer& layer : model.layers) {
    const auto* linear = std::get_if<Linear>(&layer.kind);
    const bool on_tokens =
        linear ? linear->channels || linear->last_axis : std::holds_alternative<Attention>(layer.kind);
    all += static_cast<double>(layer.macs);
    if (on_tokens) of_tokens += static_cast<double>(layer.macs);
  }
  return of_tokens > all / 2;
}

}  // namespace convoy::models
